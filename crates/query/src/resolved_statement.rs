//! A prepared statement behind the interface: text, plan and types.

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use parking_lot::Mutex;

use crate::plan_cache::CachedPlan;

/// A statement whose names and types are known.
pub(crate) struct ResolvedStatement {
    /// The text that the client has sent, for plans that are valid for one query.
    pub(crate) sql: Arc<str>,
    /// The types that the client has declared.
    pub(crate) given_types: Vec<Option<DataType>>,
    /// The plan for the tables as they were when it was made.
    pub(crate) plan: Mutex<CachedPlan>,
    /// See [`Answer::headings`](crate::Answer::headings).
    pub(crate) headings: Arc<[String]>,
    pub(crate) parameter_types: Vec<DataType>,
    pub(crate) schema: SchemaRef,
}
