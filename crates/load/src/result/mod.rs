//! The result of a run as a bundle: a directory from which every figure can be recomputed. It contains `result.json`
//! (schema 1), `histograms.hlog` (all histograms, per second, without loss), `seconds.csv`, `telemetry.csv` and
//! `summary.txt`, the output of the terminal. Reading a bundle back gives the same value.
//!
//! A `Builder` fills the bundle without knowledge of engines and drivers. Results of other tools have the same shape,
//! with less content.

mod analysis;
mod builder;
mod checks;
pub mod example;
mod from_recorder;
mod log;
mod merge;
mod number;
mod read;
mod run;
mod series;
mod summary;
mod sums;
mod text;
mod validity;
mod write;

pub use builder::{Builder, PhaseFacts, Times};
pub use checks::{Check, Fault, Gate, Rule};
pub use log::{Clock, Histograms, Key, Timeline};
pub use merge::merge;
pub use number::percentile;
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
pub const OWN_TOOL: &str = "tacho";

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
    pub fn measured(&self) -> impl Iterator<Item = &Phase> {
        self.result.phases.iter().filter(|phase| phase.measured)
    }
}

#[cfg(test)]
mod tests {
    use super::example::example;
    use super::*;

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
