//! The measured values of one step.

use serde::{Deserialize, Serialize};

/// The result of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The planned rate of `Step::Run`, operations per second.
    pub rate_per_s: f64,
    /// Operations completed per second.
    pub achieved_per_s: f64,
    /// The response time at the objective's quantile, microseconds.
    pub quantile_us: f64,
    /// The median response time, microseconds; `None` without an answer.
    #[serde(default)]
    pub p50_us: Option<f64>,
    /// The 99th percentile of the response time.
    #[serde(default)]
    pub p99_us: Option<f64>,
    /// The share of sent operations that failed.
    pub error_share: f64,
    /// The growth of the number of unanswered operations per second, as a share of the rate.
    pub backlog_growth: f64,
    /// The reason why the step says nothing about the target: the generator was too slow. `None` for a valid step.
    pub generator_fault: Option<String>,
}
