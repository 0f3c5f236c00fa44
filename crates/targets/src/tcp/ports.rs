//! Compares the local ports that a load needs with those of the machine, before the first connection is opened.

use std::fs;
use std::time::Duration;

/// How long a closed connection keeps its port (TCP_TIMEWAIT_LEN of Linux, a constant of the kernel).
const TIME_WAIT: Duration = Duration::from_secs(60);
/// The same if the kernel reuses ports (tcp_tw_reuse).
const TIME_WAIT_REUSED: Duration = Duration::from_secs(1);

/// The default of tcp_max_tw_buckets on a machine with some GiB of memory.
const TIME_WAIT_MAX: u64 = 262_144;

/// The kernel's limits for ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortLimits {
    /// `net.ipv4.ip_local_port_range`, first and last.
    pub(crate) range: (u32, u32),
    /// `net.ipv4.tcp_tw_reuse`: 0 never, 1 always, 2 on loopback.
    pub(crate) reuse: u32,
    /// `net.ipv4.tcp_max_tw_buckets`: above it closed connections release their ports at once.
    pub(crate) time_wait_max: u64,
}

impl PortLimits {
    /// Reads the limits of this machine. Unreadable ones get the defaults of Linux.
    pub(crate) fn here() -> Self {
        let numbers = |name: &str| -> Vec<u64> {
            let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
            text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let range = match numbers("ip_local_port_range")[..] {
            [first, last] => (small(first), small(last)),
            _ => (32_768, 60_999),
        };
        let reuse = numbers("tcp_tw_reuse").first().map_or(2, |value| small(*value));
        let time_wait_max = numbers("tcp_max_tw_buckets").first().copied().unwrap_or(TIME_WAIT_MAX);
        Self { range, reuse, time_wait_max }
    }

    /// The largest number of connections from one source address to one target.
    pub(crate) fn per_source(&self) -> u64 {
        u64::from(self.range.1.saturating_sub(self.range.0) + 1)
    }
}

/// The ports that a load needs at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PortDemand {
    /// The number of open connections.
    pub(crate) connections: u64,
    /// Connections per second that this side closes with FIN, so that they stay in TIME_WAIT here; infinite for a
    /// closed loop.
    pub(crate) closed_per_s: f64,
    /// Whether the target is on loopback.
    pub(crate) on_loopback: bool,
}

impl PortDemand {
    /// The smallest number of ports needed at a time: open connections, and those in TIME_WAIT if the kernel does not
    /// reuse them and their rate is known.
    fn least(&self, limits: &PortLimits) -> u64 {
        if self.closed_per_s.is_infinite() {
            return self.connections;
        }
        let reused = limits.reuse == 1 || (limits.reuse == 2 && self.on_loopback);
        self.connections + self.waiting(limits, if reused { TIME_WAIT_REUSED } else { TIME_WAIT })
    }

    fn waiting(&self, limits: &PortLimits, each: Duration) -> u64 {
        ((self.closed_per_s * each.as_secs_f64()).ceil() as u64).min(limits.time_wait_max)
    }

    /// The number of addresses of which no more than half of the ports are used, so that the kernel finds a free one
    /// quickly.
    pub(crate) fn sources(&self, limits: &PortLimits) -> u32 {
        let taken = self.connections + self.waiting(limits, TIME_WAIT);
        u32::try_from((2 * taken).div_ceil(limits.per_source()).max(1)).unwrap_or(u32::MAX)
    }

    /// Checks whether `sources` addresses are enough. The error names the limit and every way to raise it.
    pub(crate) fn check(&self, limits: &PortLimits, sources: usize) -> Result<(), String> {
        let needed = self.least(limits);
        let sources = (sources as u64).max(1);
        let there = limits.per_source() * sources;
        if needed <= there {
            return Ok(());
        }
        let (first, last) = limits.range;
        let addresses = needed.div_ceil(limits.per_source());
        let waiting = needed - self.connections;
        let mut text = format!(
            "{needed} local ports are needed at one time, but {sources} source address(es) have {there}: \
             {} each (net.ipv4.ip_local_port_range {first} {last}). Connect from at least {addresses} addresses \
             (--set dataset.sources=\"FIRST-LAST\"; on loopback a number is enough), or raise the range \
             (sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\" makes it 64512 each)",
            limits.per_source()
        );
        if waiting > 0 {
            text.push_str(&format!(
                ". {waiting} of them are closed connections in TIME_WAIT: close = \"rst\" leaves none, and \
                 net.ipv4.tcp_tw_reuse=1 frees them after a second instead of 60 (it is {})",
                limits.reuse
            ));
        }
        Err(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: PortLimits = PortLimits { range: (32_768, 60_999), reuse: 2, time_wait_max: 131_072 };

    fn needs(connections: u64, closed_per_s: f64, on_loopback: bool) -> PortDemand {
        PortDemand { connections, closed_per_s, on_loopback }
    }

    #[test]
    fn a_million_connections_need_many_addresses() {
        let million = needs(1_000_000, 0.0, true);
        assert_eq!(million.sources(&LINUX), 71);
        assert_eq!(million.check(&LINUX, 71), Ok(()));
        let error = million.check(&LINUX, 0).unwrap_err();
        for part in ["1000000 local ports", "28232 each", "ip_local_port_range", "at least 36 addresses"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains("TIME_WAIT"), "{error}");
    }

    #[test]
    fn closed_connections_keep_their_ports_unless_they_are_reset_or_reused() {
        let far = needs(1_000, 3_000.0, false);
        let error = far.check(&LINUX, 1).unwrap_err();
        for part in ["132072 local ports", "131072 of them", "close = \"rst\"", "tcp_tw_reuse=1", "it is 2"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(needs(1_000, 0.0, false).check(&LINUX, 1), Ok(()), "reset");
        assert_eq!(needs(1_000, 3_000.0, true).check(&LINUX, 1), Ok(()), "reused on loopback");
        assert_eq!(far.check(&PortLimits { reuse: 1, ..LINUX }, 1), Ok(()));
        assert_eq!(far.check(&LINUX, far.sources(&LINUX) as usize), Ok(()));
    }

    #[test]
    fn half_of_the_ports_stay_free() {
        assert_eq!(needs(14_116, 0.0, true).sources(&LINUX), 1);
        assert_eq!(needs(14_117, 0.0, true).sources(&LINUX), 2);
        assert_eq!(needs(0, 100_000.0, true).sources(&LINUX), 10, "not more than TIME_WAIT may hold");
        assert_eq!(needs(0, f64::INFINITY, true).sources(&LINUX), 10);
        assert_eq!(needs(1, f64::INFINITY, false).check(&LINUX, 1), Ok(()), "it is seen when they run out");
    }

    #[test]
    fn this_machine_has_ports() {
        assert!(PortLimits::here().per_source() > 1_000);
    }
}
