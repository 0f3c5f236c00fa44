//! Phases become segments of an engine's plan.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use crate::engine::{Close, Connect, Load, Plan, Segment, Then, When};
use crate::error::{Error, Result};
use crate::limits::SILENCE_TIMEOUT_S;
use crate::scenario::{Arrival, Mix, Phase, Scenario};
use crate::schedule::Arrivals;

/// The segments of a phase: one, or one per step.
pub(crate) fn segments(phase: &Phase, scenario: &Scenario) -> Vec<Segment> {
    let stepped = phase.mixes.iter().find(|mix| matches!(mix.arrival, Arrival::Steps | Arrival::Staircase));
    let shares = match stepped.map(|mix| mix.arrival) {
        None => return vec![segment(phase, scenario, phase.name.clone(), 0.0)],
        Some(Arrival::Staircase) => stairs(phase.steps, true),
        Some(_) => stairs(phase.steps, false),
    };
    let named = shares.iter().enumerate();
    named
        .map(|(index, share)| segment(phase, scenario, format!("{}-{}", phase.name, index + 1), *share))
        .collect()
}

/// How far each step is from the first rate to the last.
fn stairs(steps: u32, down_again: bool) -> Vec<f64> {
    let last = f64::from(steps - 1);
    let mut shares: Vec<f64> = (0..steps).map(|step| f64::from(step) / last).collect();
    if down_again {
        shares.extend((0..steps - 1).rev().map(|step| f64::from(step) / last));
    }
    shares
}

fn segment(phase: &Phase, scenario: &Scenario, name: String, share: f64) -> Segment {
    let loads = phase.mixes.iter().enumerate().map(|(index, mix)| {
        // Schedules of mixes must not be the same.
        let seed = scenario.head.seed.wrapping_add(index as u64 * 1_000_003);
        load(mix, phase, scenario, seed, share)
    });
    let loads = loads.collect();
    Segment {
        name,
        loads,
        warmup: phase.warmup,
        duration: phase.duration.unwrap_or(Duration::MAX),
        drain: phase.drain,
    }
}

fn load(mix: &Mix, phase: &Phase, scenario: &Scenario, seed: u64, share: f64) -> Load {
    let rate = mix.rate.unwrap_or(0.0);
    let open = |rate, arrivals| Load::Open { rate, arrivals, timer_us: mix.timer_us, seed };
    match mix.arrival {
        Arrival::Poisson => open(rate, Arrivals::Poisson),
        Arrival::Fixed => open(rate, Arrivals::Fixed),
        Arrival::Steps | Arrival::Staircase => {
            let to = phase.rate_to.unwrap_or(rate);
            open(rate + (to - rate) * share, Arrivals::Poisson)
        }
        Arrival::Closed => Load::Closed { window: mix.window, pause: mix.pause },
        Arrival::Idle => Load::Idle,
        Arrival::Reopen => {
            let class = mix.operations.first().map_or(0, |name| scenario.class_of(name));
            let scheduled = |rate| When::Scheduled { rate, arrivals: Arrivals::Fixed, seed };
            let when = mix.rate.map_or(When::Once, scheduled);
            Load::Reopen { when, close: Close::Fin, class, then: Then::Keep }
        }
    }
}

/// An engine's plan for a phase.
pub(crate) fn plan(
    phase: &Phase,
    scenario: &Scenario,
    target: SocketAddr,
    classes: Vec<String>,
    part: (u32, u32),
) -> Plan {
    Plan {
        target,
        sources: Vec::new(),
        groups: phase.mixes.iter().map(|mix| mix.connections).collect(),
        classes,
        threads: phase.threads,
        part,
        open_rate: phase.open_rate,
        connect: Connect::default(),
        tick_us: phase.tick_us,
        busy_poll_us: phase.busy_poll_us,
        silence: Duration::from_secs(SILENCE_TIMEOUT_S),
        segments: segments(phase, scenario),
    }
}

/// A target's URL, taken apart: `scheme://user:password@host:port/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) host_port: String,
    pub(crate) path: String,
}

impl Url {
    pub(crate) fn parse(url: &str, schemes: &[&str]) -> std::result::Result<Self, String> {
        let (scheme, rest) = url.split_once("://").unwrap_or((schemes[0], url));
        if !schemes.contains(&scheme) {
            return Err(format!("target.url `{scheme}://...`: this driver speaks {}", schemes.join(", ")));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, host_port) = authority.rsplit_once('@').map_or((None, authority), |(a, b)| (Some(a), b));
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or(("", login))) {
            None => (None, None),
            Some((user, password)) => {
                ((!user.is_empty()).then(|| user.to_owned()), Some(password.to_owned()))
            }
        };
        if host_port.is_empty() {
            return Err(format!("target.url `{}` names no host", without_password(url)));
        }
        Ok(Self { user, password, host_port: host_port.to_owned(), path: path.to_owned() })
    }

    /// The first address of the host.
    pub(crate) fn resolve(&self, default_port: u16) -> Result<SocketAddr> {
        let has_port = self.host_port.rsplit_once(':').is_some_and(|(host, port)| {
            port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
        });
        let text =
            if has_port { self.host_port.clone() } else { format!("{}:{default_port}", self.host_port) };
        let failed = |e: &dyn std::fmt::Display| {
            Error::Options(format!(
                "the target `{text}` cannot be resolved: {e}. Look at the name, at /etc/hosts and at the name server"
            ))
        };
        let mut addresses = text.to_socket_addrs().map_err(|e| failed(&e))?;
        addresses.next().ok_or_else(|| failed(&"it has no address"))
    }
}

/// A URL as it may be published.
pub(crate) fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or((None, url), |(scheme, rest)| (Some(scheme), rest));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    scheme.map_or_else(|| rest.to_owned(), |scheme| format!("{scheme}://{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let url = |text| Url::parse(text, &["redis"]).unwrap();
        let full = url("redis://me:s3:cret@host:7000/2");
        assert_eq!(full.user.as_deref(), Some("me"));
        assert_eq!(full.password.as_deref(), Some("s3:cret"));
        assert_eq!((full.host_port.as_str(), full.path.as_str()), ("host:7000", "2"));
        assert_eq!(url("redis://:pw@h").password.as_deref(), Some("pw"));
        assert_eq!(url("127.0.0.1:1").host_port, "127.0.0.1:1");
        assert_eq!(url("redis://127.0.0.1").resolve(6_379).unwrap().port(), 6_379);
        assert_eq!(url("redis://[::1]:5").resolve(6_379).unwrap().port(), 5);
        assert!(Url::parse("http://x", &["redis"]).unwrap_err().contains("speaks redis"));
        assert_eq!(without_password("redis://me:pw@host:1/2"), "redis://host:1/2");
        let error = url("redis://no-such-host.invalid").resolve(1).unwrap_err().to_string();
        assert!(error.contains("no-such-host.invalid:1` cannot be resolved"), "{error}");
    }

    #[test]
    fn stairs_go_up_and_down() {
        assert_eq!(stairs(3, false), [0.0, 0.5, 1.0]);
        assert_eq!(stairs(3, true), [0.0, 0.5, 1.0, 0.5, 0.0]);
    }
}
