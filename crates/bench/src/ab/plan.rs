//! The plan of a comparison, its runs, and its next step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Answer, Metric};
use crate::statistics::paired::BLOCKS_MIN;

/// One of the two settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arm {
    /// The setting compared with.
    A,
    /// The setting in question.
    B,
}

/// How to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is compared; the first decides how many blocks are run and is the answer.
    pub metrics: Vec<Metric>,
    /// Blocks of A against A at the begin.
    pub pilot_blocks: usize,
    /// Fewest blocks of A against B.
    pub blocks_min: usize,
    /// Most blocks of A against B; what is not told by then is not told.
    pub blocks_max: usize,
    /// Seed of the order.
    pub seed: u64,
}

impl Plan {
    /// The usual comparison of some metrics, the first of which is the answer.
    pub fn new(metrics: Vec<Metric>, seed: u64) -> Self {
        Self { metrics, pilot_blocks: 3, blocks_min: BLOCKS_MIN, blocks_max: 60, seed }
    }
}

/// One run, in the order they were run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Which setting.
    pub arm: Arm,
    /// The metrics' values; all above zero.
    pub values: BTreeMap<String, f64>,
    /// Why the run is not valid, if it is not. Its block is left out and run again.
    pub invalid: Option<String>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run the load with this setting.
    Run {
        /// Which setting.
        arm: Arm,
        /// Number of the block, from one.
        block: usize,
        /// Whether it is one of the first blocks, A against A.
        pilot: bool,
        /// Blocks that are thought to be needed in all, as far as the spread is known.
        blocks: usize,
    },
    /// The comparison is over.
    Done(Answer),
}
