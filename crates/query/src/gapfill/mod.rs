//! Gap filling in the logical plan: a row for each bucket of `GROUP BY time_bucket_gapfill(...)`, also where no rows are.
//!
//! A statement calls functions that cannot be computed ([`calls`]). When types and parameters are known, [`rewrite`] finds the
//! aggregation that groups by one of them. It groups by the ordinary function instead and puts a [`GapFill`] node above the
//! aggregation. [`bounds`] finds the first and the last bucket in the conditions of the statement. The physical planner turns
//! the node into the operator in `physical/gap_fill`.

mod bounds;
mod buckets;
mod calls;
mod constants;
mod node;
mod rewrite;
mod shape;

#[cfg(test)]
pub(crate) use buckets::Buckets;
pub(crate) use calls::{argument_types, fill_function, functions, name_fills};
pub(crate) use node::GapFill;
pub(crate) use rewrite::rewrite;
pub(crate) use shape::{Fill, Shape};
