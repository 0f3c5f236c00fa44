//! The common parts of the calls of a statement.

use super::ast::Fill;
use super::window::Buckets;

/// The common part of all calls of a statement.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// First and last time, in nanoseconds.
    pub start: i64,
    pub end: i64,
    pub buckets: Buckets,
    pub ascending: bool,
    pub fill: Fill,
    /// Whether the statement has one call, and that selects points.
    pub selector: bool,
    /// Most points of a call in a group with those of its empty buckets.
    pub buckets_max: u64,
    /// Number of points of a group that OFFSET and LIMIT reach.
    pub reached: usize,
    /// The number of columns besides the calls.
    pub others: usize,
}
