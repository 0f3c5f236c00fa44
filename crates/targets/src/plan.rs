//! Converts phases into segments of an engine's plan.

use std::net::SocketAddr;
use std::time::Duration;

use clients::target_url::{Form, TargetUrl};
use load::engine::{AfterReopen, Close, Connect, Load, Plan, ReopenTrigger, Segment};
use load::scenario::{Arrival, Mix, Phase, Scenario};
use load::schedule::Arrivals;

use crate::limits::SILENCE_TIMEOUT_S;

/// The segments of a phase: one, or one for each step.
pub fn segments(phase: &Phase, scenario: &Scenario) -> Vec<Segment> {
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

/// The position of each step between the first rate and the last, from 0 to 1.
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
        // Mixes need different schedules.
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
            let scheduled = |rate| ReopenTrigger::Scheduled { rate, arrivals: Arrivals::Fixed, seed };
            let when = mix.rate.map_or(ReopenTrigger::Once, scheduled);
            Load::Reopen { when, close: Close::Fin, class, then: AfterReopen::Keep }
        }
    }
}

/// The engine's plan of a phase.
pub(crate) fn plan(phase: &Phase, scenario: &Scenario, target: SocketAddr, part: (u32, u32)) -> Plan {
    Plan {
        target,
        elsewhere: Vec::new(),
        tls: None,
        sources: Vec::new(),
        groups: phase.mixes.iter().map(|mix| mix.connections).collect(),
        classes: scenario.classes(),
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

/// The group of a connection and its number there. `groups` has the number of connections of each group.
pub(crate) fn place_of(groups: impl IntoIterator<Item = u32>, number: u32) -> (usize, u32) {
    let mut first = 0;
    for (group, connections) in groups.into_iter().enumerate() {
        if number < first + connections {
            return (group, number - first);
        }
        first += connections;
    }
    unreachable!("BUG: connection {number} belongs to no group")
}

/// `target.url`, checked for a driver.
pub(crate) fn target_url(scenario: &Scenario, form: &Form) -> Result<TargetUrl, String> {
    TargetUrl::parse(&scenario.target.url, form).map_err(|what| format!("target.url: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stairs_go_up_and_down() {
        assert_eq!(stairs(3, false), [0.0, 0.5, 1.0]);
        assert_eq!(stairs(3, true), [0.0, 0.5, 1.0, 0.5, 0.0]);
    }

    #[test]
    fn every_connection_has_a_place_in_its_group() {
        let places: Vec<_> = (0..5).map(|number| place_of([2, 0, 3], number)).collect();
        assert_eq!(places, [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)]);
    }
}
