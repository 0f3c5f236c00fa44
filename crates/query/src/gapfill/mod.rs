//! Rows for buckets of time without rows: `GROUP BY time_bucket_gapfill(...)`.
//!
//! A statement calls functions that cannot be computed ([`calls`]). When types and parameters are known, the rewriting
//! of the plan ([`rewrite`]) finds the aggregation that groups by one of them, puts the ordinary function there, and
//! an operator above it that makes the missing rows. The times at which it begins and ends stand in the conditions
//! ([`bounds`]). The operator ([`operator`]) takes the groups in order and gives them in order ([`filling`]).

mod bounds;
mod buckets;
mod calls;
mod filling;
mod given;
mod node;
mod operator;
mod rewrite;
#[cfg(test)]
mod tests;

pub(crate) use buckets::Buckets;
pub(crate) use calls::{argument_types, fill_function, functions, name_fills};
pub(crate) use node::PlanGapFill;
pub(crate) use operator::GapFillOperator;
pub(crate) use rewrite::rewrite;

/// What a column holds in rows that were made, and in place of NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash)]
pub(crate) enum Fill {
    /// The last value that is not NULL.
    Carry,
    /// The point on the straight line between the values before and after; NULL outside of them.
    Line,
}

/// What belongs where in the rows of the aggregation. Columns are counted from zero.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Hash)]
pub(crate) struct Shape {
    /// The columns of the other keys: each of their values has its own buckets.
    keys: Vec<usize>,
    /// The column with the bucket's start.
    time: usize,
    /// Columns that are filled.
    fills: Vec<(usize, Fill)>,
    buckets: Buckets,
}
