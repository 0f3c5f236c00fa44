//! The measured values of one step.

use serde::{Deserialize, Serialize};

/// What one step brought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Rate asked for, operations per second, as `Step::Run` said it.
    pub rate_per_s: f64,
    /// Operations completed per second.
    pub achieved_per_s: f64,
    /// Response time at the objective's quantile, microseconds.
    pub quantile_us: f64,
    /// Median of the response time, microseconds; `None` where nothing was answered.
    #[serde(default)]
    pub p50_us: Option<f64>,
    /// Its 99th percentile.
    #[serde(default)]
    pub p99_us: Option<f64>,
    /// Failures as a share of what was sent.
    pub error_share: f64,
    /// Growth of the number of operations begun and not answered, per second, as a share of the rate.
    pub backlog_growth: f64,
    /// Why the step says nothing about the target: the generator itself was too slow. `None` for a valid step.
    pub generator_fault: Option<String>,
}
