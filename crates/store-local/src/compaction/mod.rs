//! Decides which parts are merged next. The decision is a pure function of the version; compactor.rs executes it.
//!
//! Parts of one table whose partitions overlap form a *group*. The order of sequences within a group states which part is
//! newer. Flushes add small parts at the new end. Parts have size classes, each [`Limits::fan_in`] times larger than the
//! class before, and a part counts as at least as large as all newer ones. When `fan_in` neighbours count for the same
//! class, a merge makes one part of them. So the store rewrites a row about once per class, and a group that is merged
//! faster than it is written never has more parts than `Limits::resting_max`. A part of half the largest size is *full*,
//! and no merge takes it. The bound of a group that is written faster is in pressure.rs.
//!
//! Two rules bring a group to rest. The parts between two full parts get no new neighbours, so one merge makes one part of
//! them. A group that got no rows while the store took [`Limits::quiet_rows`] rows merges each part with newer ones that
//! together are not much smaller; this leaves a few parts.
//!
//! Invariants:
//! 1. A merge takes neighbours in the order of sequences of one group, and all parts between them (manifest.rs,
//!    invariant 4).
//! 2. A merge has at least two inputs, and a rewrite (rewrite.rs) leaves no deletion that it was for. So an executed plan
//!    never comes again.
//! 3. The sum of the inputs of a merge does not exceed the largest part size.

mod group;
mod limits;
mod plan;
mod pressure;
mod rewrite;
#[cfg(test)]
mod simulation;

pub use limits::Limits;

pub(crate) use group::Merge;
pub(crate) use plan::{MergePlan, choose};
pub(crate) use pressure::{OverlapPressure, overlap_pressure};
pub(crate) use rewrite::choose_rewrites;
