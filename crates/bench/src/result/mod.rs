//! The result of a run as a bundle: a directory from which every figure can be recomputed. It contains `result.json`
//! (schema 1), `histograms.hlog` (all histograms, per second, without loss), `seconds.csv`, `telemetry.csv` and
//! `summary.txt`, the output of the terminal. Reading a bundle back gives the same value.
//!
//! A `Builder` fills the bundle without knowledge of engines and drivers. Results of other tools have the same shape,
//! with less content.

mod analysis;
mod builder;
mod checks;
mod distribution;
mod log;
mod merge;
mod number;
mod read;
mod recorded;
mod run;
mod series;
mod summary;
mod sums;
mod text;
mod validity;
mod write;

pub use builder::{Builder, PhaseFacts, Times};
pub use checks::{Check, Fault, Gate, Rule};
pub use distribution::Distribution;
pub use log::{Clock, Histograms, Key, Timeline};
pub use merge::merge;
pub(crate) use number::percentile;
pub use run::{
    Arrival, Clocks, Cost, Generator, Operation, OperationCounts, Partial, Phase, RunResult, SCHEMA,
    ScenarioAsRun, Steady, Target, Tool, Uncertainty,
};
pub use series::{SecondLine, Telemetry};
pub use summary::{QUANTILES, Quantile, Summary};
pub use validity::Validity;
pub use write::write_whole;

/// The name of the sum over all classes of operation.
pub const ALL: &str = "all";
/// The name of this program in its own results.
pub(crate) const OWN_TOOL: &str = "tacho";

/// One run with all its records.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// The content of `result.json`.
    pub result: RunResult,
    /// The content of `histograms.hlog`.
    pub histograms: Histograms,
    /// The content of `seconds.csv`.
    pub seconds: Vec<SecondLine>,
    /// The content of `telemetry.csv`.
    pub telemetry: Telemetry,
}

impl Bundle {
    /// The phase whose figures are the result: the last measured one, or the last of all.
    pub fn main_phase(&self) -> Option<&Phase> {
        let phases = &self.result.phases;
        phases.iter().rev().find(|phase| phase.measured).or(phases.last())
    }

    /// All phases whose figures are a result.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &Phase> {
        self.result.phases.iter().filter(|phase| phase.measured)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::recorder::Latency;

    pub(crate) fn latency(values_us: &[u64]) -> Latency {
        let mut latency = Latency::new();
        values_us.iter().for_each(|us| latency.record_ns(us * 1_000));
        latency
    }

    /// A valid run of two seconds with two classes of operation.
    pub(crate) fn example() -> Bundle {
        example_with(7, &[150, 250, 1_200])
    }

    /// The same with response times of `get` from a list, in turn.
    pub(crate) fn example_with(seed: u64, get_us: &[u64]) -> Bundle {
        let scenario = ScenarioAsRun {
            name: "example".to_owned(),
            about: "gets and sets, two to one second".to_owned(),
            driver: "redis".to_owned(),
            article: None,
            configuration: serde_json::json!({"target": {"url": "redis://127.0.0.1:6379"}, "scale": 1}),
        };
        let mut builder = Builder::new(scenario, seed, UNIX_EPOCH + Duration::from_secs(1_800_000_000));
        builder
            .command(&["tacho".to_owned(), "bench".to_owned()], Some("abc"))
            .generator(Generator { threads: 1, cpu_s: Some(0.5) })
            .phase(&PhaseFacts {
                name: "run".to_owned(),
                kind: "run".to_owned(),
                measured: true,
                starts: Duration::ZERO,
                warmup: Duration::ZERO,
                duration: Duration::from_secs(2),
                arrival: Arrival::Open { process: "poisson".to_owned(), timer_us: 0, rate_per_s: 200.0 },
                connections: 10,
            });
        for (name, values) in [("get", get_us), ("set", &[400, 500][..])] {
            let all: Vec<u64> = values.iter().copied().cycle().take(200).collect();
            let mut counts =
                OperationCounts { planned: 201, sent: 201, completed: 200, ..Default::default() };
            counts.errors.insert("timeout".to_owned(), 1);
            let (lag, whole) = (latency(&[5; 200]), latency(&all));
            let times = Times { response: Some(&whole), service: Some(&whole), lag: Some(&lag) };
            builder.operation("run", name, &counts, times);
            for (second, half) in all.chunks(100).enumerate() {
                let line = SecondLine {
                    phase: "run".to_owned(),
                    operation: name.to_owned(),
                    second: second as u64,
                    sent: 100,
                    completed: 100,
                    ..SecondLine::default()
                };
                let (lag, half) = (latency(&[5; 100]), latency(half));
                builder.second(&line, Times { response: Some(&half), service: Some(&half), lag: Some(&lag) });
                builder.telemetry(second as u64, "target.rss_bytes", 1e6 + second as f64);
            }
        }
        builder.gate(Gate::new("sent_share", 1.0, Rule::AtLeast, 0.99, "", "the generator kept up"));
        builder.check("keys stored", 200, 200, true);
        builder.finish(Duration::from_secs(2))
    }

    #[test]
    fn no_output_leaves_out_that_a_run_is_partial_or_invalid() {
        let mut bundle = example();
        assert!(bundle.to_string().starts_with("VALID example"), "{bundle}");
        bundle.result.partial = Some(Partial { reason: "interrupted (Ctrl-C)".to_owned(), at_s: 1.0 });
        bundle.result.settle();
        assert!(bundle.to_string().starts_with("PARTIAL example"), "{bundle}");
        bundle.result.faults.push(Fault { at_s: 1.0, what: "the server closed all connections".to_owned() });
        bundle.result.settle();
        let text = bundle.to_string();
        assert!(text.starts_with("INVALID, PARTIAL example") && text.ends_with("INVALID, PARTIAL"), "{text}");
        assert!(
            text.contains("interrupted (Ctrl-C)") && text.contains("second 1: the server closed"),
            "{text}"
        );
        assert!(!bundle.result.valid);
    }
}
