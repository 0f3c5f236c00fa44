//! Compares two settings A and B by interleaved blocks. Pure: `next` looks at the runs so far and says what to run
//! next; a runner carries it out.
//!
//! A block is one run of each arm back to back, or one short slice of each while both stay connected, in random order, so
//! that a slow drift of the machine cancels. The first blocks are A against A: they show how much two of the same thing
//! differ, and that noise floor stands beside every verdict. How many blocks follow is fixed by the spread alone and never
//! by which arm is ahead, so looking in between does not favour an answer.

mod answer;
mod decide;
mod metric;
mod plan;
pub(crate) mod slices;
mod verdict;

pub use answer::{Answer, Compared};
pub(crate) use decide::order;
pub use decide::{block_seed, next};
pub use metric::{Kind, Means, Metric};
pub use plan::{Arm, Plan, Run, Step};
pub use verdict::Doubt;

#[cfg(test)]
mod tests;
