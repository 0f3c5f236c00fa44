//! The machine and the time of a run, which a reader needs to judge its figures.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use model::Timestamp;

/// The machine a run happened on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// The name in /proc/cpuinfo.
    pub cpu: String,
    /// The number of processors that this process may use.
    pub cores: usize,
    /// The kernel release.
    pub kernel: String,
    /// Physical memory in MiB.
    pub memory_mib: u64,
}

impl Machine {
    /// This machine.
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: processors() as usize,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_mib: field(&read("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.strip_suffix("kB")?.trim().parse::<u64>().ok())
                .unwrap_or(0)
                / 1_024,
        }
    }
}

/// Processors that this process may use.
pub fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The current time as `2026-11-21T07:01:37Z`.
pub fn utc_now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc_at(since.as_secs())
}

/// Seconds since 1970 as `2026-11-21T07:01:37Z`.
pub(crate) fn utc_at(seconds: u64) -> String {
    let micros = i64::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", Timestamp::from_micros(micros).date())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc_at(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc_at(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(utc_at(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(utc_at(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn this_machine_has_a_processor_and_memory() {
        let machine = Machine::here();
        assert!(machine.cores > 0 && machine.memory_mib > 0 && !machine.kernel.is_empty(), "{machine:?}");
    }
}
