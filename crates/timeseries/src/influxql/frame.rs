//! What the calls of a statement have in common.

use super::ast::Fill;
use super::window::Buckets;

/// What all calls of a statement share.
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
    /// The number of columns beside the calls.
    pub others: usize,
}
