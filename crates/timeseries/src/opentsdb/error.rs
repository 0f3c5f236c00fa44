//! Why a query has no answer.

use crate::SourceError;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The query is wrong.
    #[error("{0}")]
    Invalid(String),
    /// No table has the values of the metric.
    #[error("No such name for 'metrics': '{0}'")]
    NoSuchMetric(String),
    /// The query costs more than it may.
    #[error("The query has more than {limit} {what}. Ask for less time, fewer series or longer intervals")]
    OverLimit {
        /// The counted quantity.
        what: &'static str,
        /// How many of it a query may have.
        limit: u64,
    },
    /// A table cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl QueryError {
    pub(crate) fn invalid(problem: impl Into<String>) -> Self {
        Self::Invalid(problem.into())
    }
}
