//! The rules for a valid run. They are fixed before the run.

use load::engine::event::NO_PORT;
use load::engine::{Load, ReopenTrigger};
use load::recorder::{Class, Sends};
use load::result::{Gate, Rule};
use load::scenario::Gates;
use load::schedule::Arrivals;
use load::statistics::arrivals::poisson_statistic;

use super::meter::Metered;

/// The facts about one segment that the gates check.
pub(super) struct Facts<'a> {
    pub(super) total: &'a Class,
    pub(super) sends: &'a Sends,
    pub(super) loads: &'a [Load],
    pub(super) metered: Option<&'a Metered>,
    /// The number of generator threads that can run at a time.
    pub(super) threads: u32,
}

/// A gate: the value of a segment and its limit.
struct GateRule {
    name: &'static str,
    unit: &'static str,
    /// The side of the limit that passes.
    rule: Rule,
    limit: fn(&Gates) -> f64,
    /// The value to check; `None` if the gate does not apply to the segment.
    value: fn(&Facts<'_>, &Gates) -> Option<f64>,
    /// The meaning of the value, and what to do if the gate fails.
    explanation: &'static str,
}

/// All gates, in the order of the result.
const GATES: [GateRule; 9] = [
    GateRule {
        name: "sent_share",
        unit: "",
        rule: Rule::AtLeast,
        limit: |limits| limits.sent_share_min,
        value: |facts, _| facts.is_scheduled().then(|| facts.sent_share()),
        explanation: "share of the planned operations that was sent; a lower one means that the load was not the planned one",
    },
    GateRule {
        name: "lag_p99",
        unit: "us",
        rule: Rule::AtMost,
        limit: |limits| limits.lag_p99_us_max,
        value: |facts, _| facts.is_timed().then(|| facts.total.clocks.lag.quantile_us(0.99) as f64),
        explanation: "the generator's own lateness; give it more threads (threads = N) or processes (--workers N), or lower the rate",
    },
    GateRule {
        name: "generator_core",
        unit: "",
        rule: Rule::AtMost,
        limit: |limits| limits.generator_core_max,
        value: |facts, _| facts.generator_core().filter(|_| facts.is_timed()),
        explanation: "share of a core that each of the generator's threads used on average; above it the generator may be the limit, not the server",
    },
    GateRule {
        name: "arrival",
        unit: "",
        rule: Rule::AtMost,
        limit: |limits| limits.arrival_max,
        value: |facts, _| poisson_statistic(&facts.sends.in_order(), poisson_timer(facts.loads)?),
        explanation: "Anderson-Darling statistic of the gaps between sends against an exponential distribution; above it operations were not \
             sent at random, and the load was not the planned one",
    },
    GateRule {
        name: "error_share",
        unit: "",
        rule: Rule::AtMost,
        limit: |limits| limits.error_share_max,
        value: |facts, _| {
            let counts = &facts.total.counts;
            Some(counts.errors_total() as f64 / (counts.sent.max(1) as f64))
        },
        explanation: "failures against operations sent, by text in the counts",
    },
    GateRule {
        name: "local_ports",
        unit: "connects",
        rule: Rule::AtMost,
        limit: |_| 0.0,
        value: |facts, _| Some(facts.without_port()).filter(|count| *count > 0).map(|count| count as f64),
        explanation: "connects for which this machine had no local port; connect from more addresses or raise net.ipv4.ip_local_port_range",
    },
    GateRule {
        name: "completed",
        unit: "operations",
        rule: Rule::AtLeast,
        limit: |_| 1.0,
        value: |facts, _| (!facts.is_idle()).then_some(facts.total.counts.measured_completed as f64),
        explanation: "operations of the measured part that were answered",
    },
    GateRule {
        name: "hit_share",
        unit: "",
        rule: Rule::AtLeast,
        limit: |limits| limits.hit_share_min,
        value: |facts, limits| {
            (limits.hit_share_min > 0.0).then(|| facts.total.counts.hit_rate().unwrap_or(0.0))
        },
        explanation: "share of what was asked for that was there; a lower one measures how fast the server says no",
    },
    GateRule {
        name: "steal_share",
        unit: "",
        rule: Rule::AtMost,
        limit: |limits| limits.steal_share_max,
        value: |facts, _| facts.metered?.steal,
        explanation: "share of the processors' time that the hypervisor gave to others",
    },
];

/// Checks one measured segment.
pub(super) fn judge(facts: &Facts<'_>, limits: &Gates) -> Vec<Gate> {
    let judged = GATES.iter().filter_map(|gate| {
        let value = (gate.value)(facts, limits)?;
        Some(Gate::new(gate.name, value, gate.rule, (gate.limit)(limits), gate.unit, gate.explanation))
    });
    judged.collect()
}

impl Facts<'_> {
    /// Whether a load is on a schedule.
    fn is_scheduled(&self) -> bool {
        self.loads.iter().any(|load| !load.is_closed() && *load != Load::Idle)
    }

    /// Whether the loads are on a schedule that the generator can keep. Two loads have no lag gate: thousands of
    /// handshakes that start at one moment end late by nature, and a sample of idle connections only counts answers.
    fn is_timed(&self) -> bool {
        let untimed = |load: &Load| {
            matches!(load, Load::Reopen { when: ReopenTrigger::Once, .. } | Load::Sample { .. })
        };
        self.is_scheduled() && !self.loads.iter().any(untimed)
    }

    fn is_idle(&self) -> bool {
        self.loads.iter().all(|load| *load == Load::Idle)
    }

    fn sent_share(&self) -> f64 {
        let counts = &self.total.counts;
        counts.measured_sent as f64 / counts.measured_planned.max(1) as f64
    }

    /// The share of a core that a thread of the generator used.
    fn generator_core(&self) -> Option<f64> {
        let percent = self.metered?.cost.generator_cpu_percent?;
        Some(percent / 100.0 / f64::from(self.threads))
    }

    /// The number of connects that found no local port.
    fn without_port(&self) -> u64 {
        let errors = self.total.counts.errors.iter().filter(|(what, _)| what.contains(NO_PORT));
        errors.map(|(_, count)| *count).sum()
    }
}

/// The longest timer of the loads if all of them have random arrivals, microseconds, and 0 without a timer; `None` if
/// one has other arrivals.
fn poisson_timer(loads: &[Load]) -> Option<u32> {
    let timers = loads.iter().map(|load| match load {
        Load::Open { arrivals: Arrivals::Poisson, timer_us, .. } => Some(*timer_us),
        _ => None,
    });
    timers.collect::<Option<Vec<u32>>>()?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::recorder::{Clocks, Counts, Operation, Recorder, Window};
    use load::schedule::Schedule;

    fn gates(change: impl FnOnce(&mut Counts, &mut Gates)) -> Vec<String> {
        let mut counts = Counts {
            planned: 1_000,
            sent: 1_000,
            completed: 1_000,
            measured_planned: 1_000,
            measured_sent: 1_000,
            measured_completed: 1_000,
            ..Counts::default()
        };
        let mut limits = Gates::default();
        change(&mut counts, &mut limits);
        let total = Class { counts, clocks: Clocks::default() };
        let loads = [Load::Open { rate: 1.0, arrivals: Arrivals::Poisson, timer_us: 0, seed: 1 }];
        let sends = Sends::default();
        let facts = Facts { total: &total, sends: &sends, loads: &loads, metered: None, threads: 1 };
        judge(&facts, &limits).into_iter().filter(|gate| !gate.passed).map(|gate| gate.name).collect()
    }

    #[test]
    fn each_gate_fails_by_itself() {
        assert!(gates(|_, _| ()).is_empty());
        assert_eq!(gates(|counts, _| counts.measured_sent = 989), ["sent_share"]);
        assert_eq!(gates(|counts, _| counts.error("timeout", 1)), ["error_share"]);
        assert_eq!(gates(|counts, _| counts.measured_completed = 0), ["completed"]);
        let no_port = |counts: &mut Counts, limits: &mut Gates| {
            counts.error(&format!("not opened: {NO_PORT}"), 1);
            limits.error_share_max = 1.0;
        };
        assert_eq!(gates(no_port), ["local_ports"]);
        let few = |counts: &mut Counts, limits: &mut Gates| {
            (counts.hits, counts.misses) = (89, 11);
            limits.hit_share_min = 0.9;
        };
        assert_eq!(gates(few), ["hit_share"]);
    }

    #[test]
    fn arrivals_are_judged_where_they_were_to_be_random() {
        let judged = |(sent, sent_us): (Arrivals, u32), (planned, timer_us): (Arrivals, u32)| {
            let mut recorder = Recorder::new(Window { from_ns: 0, until_ns: u64::MAX }, 1);
            for at in Schedule::new(sent, 10, 1_000.0, 7).on_timer(sent_us).take(3_000) {
                recorder.planned(at.at_ns);
                let operation = Operation { class: 0, intended_ns: at.at_ns, sent_ns: at.at_ns + 9_000 };
                recorder.sent(&operation, 1);
                recorder.completed(&operation, at.at_ns + 90_000, 1);
            }
            let loads = [Load::Open { rate: 1_000.0, arrivals: planned, timer_us, seed: 7 }];
            let total = recorder.total();
            let facts =
                Facts { total: &total, sends: recorder.sends(), loads: &loads, metered: None, threads: 1 };
            let gates = judge(&facts, &Gates::default()).into_iter();
            gates.filter(|gate| gate.name == "arrival").map(|gate| gate.passed).collect::<Vec<bool>>()
        };
        let (poisson, fixed) = ((Arrivals::Poisson, 0), (Arrivals::Fixed, 0));
        assert_eq!(judged(poisson, poisson), [true]);
        assert_eq!(judged(fixed, poisson), [false]);
        assert!(judged(fixed, fixed).is_empty(), "they were not to be random");
        let ticks = (Arrivals::Poisson, 2_000);
        assert_eq!(judged(ticks, ticks), [true], "the plan has ticks, and so have the sends");
        assert_eq!(judged(ticks, poisson), [false], "the plan had none");
    }
}
