//! Whether a phase can be compared in slices, and the gates of a side.

use load::recorder::{Class, Sends};
use load::scenario::{Arrival, Phase, Scenario};
use targets::driver_of;
use targets::plan;

use super::gates::{Facts, judge};
use crate::limits::SLICE_MS;

/// Whether a phase can be cut into slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slicing {
    /// In slices of this many milliseconds by default.
    ByDefault(u32),
    /// Only on request: a load on a schedule. While a server stands still for longer than a slice, whole runs count
    /// every operation that comes due, and slices only those of one slice.
    OnRequest,
    /// Never: the driver does not support it, or the load has an end of its own.
    Never,
}

impl Slicing {
    /// The common slicing of two sides.
    pub(crate) fn of_both(self, other: Self) -> Self {
        match (self, other) {
            (Self::ByDefault(a), Self::ByDefault(b)) => Self::ByDefault(a.max(b)),
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::OnRequest, _) | (_, Self::OnRequest) => Self::OnRequest,
        }
    }
}

/// The slicing of a phase.
pub(crate) fn slicing(scenario: &Scenario, phase: &Phase) -> std::result::Result<Slicing, String> {
    let all_are = |kinds: &[Arrival]| phase.mixes.iter().all(|mix| kinds.contains(&mix.arrival));
    let counted = |own: &toml::Table| own.contains_key("requests");
    let ends = counted(&scenario.dataset) || phase.mixes.iter().any(|mix| counted(&mix.driver_keys));
    let Some(ms) = driver_of(scenario)?.phase_capabilities(phase).slice_ms else { return Ok(Slicing::Never) };
    if ends || phase.duration.is_none() || !all_are(&[Arrival::Closed, Arrival::Poisson, Arrival::Fixed]) {
        return Ok(Slicing::Never);
    }
    if !all_are(&[Arrival::Closed]) {
        return Ok(Slicing::OnRequest);
    }
    // A connection with a pause needs one operation in each slice.
    let ms = ms.max(phase.pause_ms());
    Ok(if SLICE_MS.contains(&ms) { Slicing::ByDefault(ms) } else { Slicing::Never })
}

/// The first gate of the scenario that some slices of a side fail, as a sentence.
pub(crate) fn failed_gate(total: &Class, scenario: &Scenario, phase: &Phase) -> Option<String> {
    let loads = plan::segments(phase, scenario).swap_remove(0).loads;
    let sends = Sends::default();
    let facts = Facts { total, sends: &sends, loads: &loads, metered: None, threads: phase.threads };
    judge(&facts, &scenario.gates).into_iter().find(|gate| !gate.passed).map(|gate| gate.sentence())
}

#[cfg(test)]
mod tests {
    use super::*;
    use targets::driver::SLICE_MS_EVENTS;

    #[test]
    fn two_sides_are_cut_where_both_can_be() {
        use Slicing::{ByDefault, Never, OnRequest};
        assert_eq!(ByDefault(20).of_both(ByDefault(100)), ByDefault(100));
        assert_eq!((ByDefault(20).of_both(OnRequest), OnRequest.of_both(OnRequest)), (OnRequest, OnRequest));
        assert_eq!((OnRequest.of_both(Never), Never.of_both(ByDefault(20))), (Never, Never));
    }

    #[test]
    fn loads_on_a_schedule_are_cut_where_it_is_asked_for() {
        let slicing = |name: &str, phase: &str, sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let scenario = Scenario::load(name, &sets).unwrap();
            let phase = scenario.phases.iter().find(|known| known.name == phase).unwrap();
            super::slicing(&scenario, phase).unwrap()
        };
        let closed = ["phase.run.arrival=closed"];
        assert_eq!(slicing("gemini-str32", "run", &closed), Slicing::ByDefault(SLICE_MS_EVENTS));
        assert_eq!(slicing("gemini-str32", "run", &["phase.run.arrival=fixed"]), Slicing::OnRequest);
        assert_eq!(slicing("gemini-mix", "run", &["phase.run.mix.hash.arrival=closed"]), Slicing::OnRequest);
        assert_eq!(slicing("gemini-str32", "load", &[]), Slicing::Never, "it has an end of its own");
        assert_eq!(slicing("http-steps", "climb", &[]), Slicing::Never, "each step has a result of its own");
        assert_eq!(slicing("thingsboard-reconnect", "ramp", &[]), Slicing::Never);
        assert_eq!(slicing("slb-s1", "connections", &[]), Slicing::Never);
    }

    #[test]
    fn one_question_at_rest_is_compared_in_slices_and_all_else_by_whole_runs() {
        use targets::driver::SLICE_MS_THREADS;
        let slice = |phase: usize, sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let scenario = Scenario::load("reads", &sets).unwrap();
            slicing(&scenario, &scenario.phases[phase]).unwrap()
        };
        let one = ["phase.rest.operations=['one-1h']"];
        assert_eq!((slice(0, &one), slice(0, &[])), (Slicing::ByDefault(SLICE_MS_THREADS), Slicing::Never));
        assert_eq!(slice(1, &one), Slicing::Never, "what is read grows meanwhile");
    }
}
