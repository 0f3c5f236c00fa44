//! The operator of gap filling: it takes the rows of an aggregation in the order of their keys and adds the missing ones.
//!
//! [`operator`] is DataFusion's side of it. [`filling`] decides which rows there are and what they hold. [`window`] holds the
//! input rows that can be passed on, and [`output_rows`] builds the batches that are returned.

mod filling;
mod operator;
mod output_rows;
mod planner;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use operator::GapFillOperator;
pub(crate) use planner::PlanGapFill;
