//! Compares two settings A and B in interleaved blocks. The functions are pure: `next` takes the runs so far and
//! returns the next step, which a runner carries out.
//!
//! A block is one run of each arm back to back, or one short slice of each while both stay connected. The order is
//! random, so that a slow drift of the machine cancels. The first blocks compare A with A. They show how much two runs
//! of the same setting differ; this noise floor is beside every verdict. The spread alone determines the number of
//! blocks, never which arm is ahead, so that early looks at the data favour no answer.

mod answer;
mod decide;
mod metric;
mod plan;
pub(crate) mod slices;
mod verdict;

pub use answer::{Answer, MetricComparison};
pub(crate) use decide::order;
pub use decide::{block_seed, next};
pub use metric::{FigureKind, Means, Metric};
pub use plan::{Arm, Plan, Run, Step};
pub use verdict::Doubt;

#[cfg(test)]
mod tests;
