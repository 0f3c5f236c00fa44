//! Answers of statements, why there may be none, and what they may cost.

use std::ops::ControlFlow;

use super::value::Value;
use crate::SourceError;

/// Why a statement has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The statement is wrong or exceeds a limit; in the words of InfluxDB.
    #[error("{0}")]
    Statement(String),
    /// A table cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// The cost limits of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most points that a statement holds in memory, or gives without a function.
    pub points: u64,
    /// Most buckets of `GROUP BY time(...)` in the range of a statement.
    pub buckets: u64,
    /// Most series or groups that a statement lists.
    pub series: usize,
}

/// What a statement depends on besides the tables.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// The time of the query, in nanoseconds since the epoch.
    pub now: i64,
    /// The cost limits of the statement.
    pub limits: Limits,
}

/// The head of a piece of an answer: what its rows are.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The name of the measurement; empty for lists that have none.
    pub name: String,
    /// The tags of GROUP BY, sorted by name.
    pub tags: Vec<(String, String)>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// Whether the first column is a time: an integer in nanoseconds since the epoch.
    pub timed: bool,
    /// The zone in which times are shown, if the statement names one.
    pub zone: Option<chrono_tz::Tz>,
}

/// Takes the rows of an answer. Rows of one head come one after the other.
pub type Visit<'v> = dyn FnMut(&Head, Vec<Value>) -> ControlFlow<()> + 'v;
