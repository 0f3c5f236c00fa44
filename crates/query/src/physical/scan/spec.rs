//! The part of a query that a table answers: columns, conditions, range of time, limit.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use model::TimeRange;
use store::TagMatcher;

/// The columns and the conditions of a scan. It depends neither on the rows of the table nor on the user.
#[derive(Debug)]
pub(crate) struct ScanSpec {
    pub(crate) table: Arc<str>,
    /// The columns of the table when the query was planned.
    pub(crate) schema: SchemaRef,
    /// The columns to read, by their index in the schema.
    pub(crate) columns: Vec<usize>,
    pub(crate) matchers: Vec<TagMatcher>,
    pub(crate) range: TimeRange,
    pub(crate) limit: Option<usize>,
    pub(crate) batch_rows: usize,
    pub(crate) readers_max: usize,
}
