//! The plan of a comparison, its runs, and its next step.

use std::collections::BTreeMap;

use load::statistics::paired::BLOCKS_MIN;
use serde::{Deserialize, Serialize};

use super::{Answer, Metric};

/// One of the two settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arm {
    /// The baseline.
    A,
    /// The setting to judge.
    B,
}

/// The plan of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The metrics. The first one is primary: it determines the number of blocks and the answer.
    pub metrics: Vec<Metric>,
    /// The number of blocks of A against A at the start.
    pub pilot_blocks: usize,
    /// The smallest number of blocks of A against B.
    pub blocks_min: usize,
    /// The largest number of blocks of A against B. Without a verdict by then the answer is "cannot tell".
    pub blocks_max: usize,
    /// The seed of the order.
    pub seed: u64,
}

impl Plan {
    /// The default plan. The first metric is the primary one.
    pub fn new(metrics: Vec<Metric>, seed: u64) -> Self {
        Self { metrics, pilot_blocks: 3, blocks_min: BLOCKS_MIN, blocks_max: 60, seed }
    }
}

/// One run of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The setting.
    pub arm: Arm,
    /// The values of the metrics, all above zero.
    pub values: BTreeMap<String, f64>,
    /// The reason why the run is not valid. Its block is discarded and repeated.
    pub invalid: Option<String>,
}

/// The next step of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run the load with this setting.
    Run {
        /// The setting.
        arm: Arm,
        /// The number of the block, from one.
        block: usize,
        /// Whether the block compares A with A.
        pilot: bool,
        /// The number of blocks expected in all, according to the spread so far.
        blocks: usize,
    },
    /// The comparison is over.
    Done(Answer),
}
