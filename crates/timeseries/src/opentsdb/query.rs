//! Queries as values.

use super::{Filter, Metric, QueryError, RateOptions, Tz, limits};

#[derive(Debug, Clone)]
pub struct Query {
    /// The first time of the answer, in milliseconds since 1970.
    pub start: i64,
    /// The last time of the answer, in milliseconds since 1970.
    pub end: i64,
    /// The time zone of calendar intervals.
    pub zone: Tz,
    /// Whether all intervals follow the calendar.
    pub use_calendar: bool,
    /// The sub queries, in the order of their answers.
    pub queries: Vec<SubQuery>,
}

/// What one sub query reads and computes.
#[derive(Debug, Clone)]
pub struct SubQuery {
    /// The name of the aggregator over series.
    pub aggregator: String,
    /// The data that it reads.
    pub selection: Selection,
    /// The downsampling, as a text.
    pub downsample: Option<String>,
    /// Whether it takes the rate of each series, and how.
    pub rate: Option<RateOptions>,
    /// Conditions on tags.
    pub filters: Vec<Filter>,
    /// Whether a series may have only tags that the filters name.
    pub explicit_tags: bool,
}

/// The series that a sub query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Series of a metric.
    Metric(Metric),
    /// Series of one metric, by their TSUIDs.
    Tsuids(Vec<String>),
}

impl Query {
    /// Checks what does not depend on data.
    ///
    /// # Errors
    /// [`QueryError`]: the query is wrong or too large.
    pub(super) fn check(&self) -> Result<(), QueryError> {
        let (start, end) = (self.start, self.end);
        if end < start {
            let problem =
                format!("End time [{end}] must be greater than or equal to the start time [{start}]");
            return Err(QueryError::Invalid(problem));
        }
        if start < 0 {
            return Err(QueryError::Invalid(format!("Invalid timestamp: {start}")));
        }
        if self.queries.is_empty() {
            return Err(QueryError::invalid("Missing queries"));
        }
        at_most(self.queries.len(), "sub queries", limits::SUB_QUERIES_MAX)?;
        for query in &self.queries {
            at_most(query.filters.len(), "filters", limits::FILTERS_MAX)?;
            if let Selection::Tsuids(tsuids) = &query.selection {
                at_most(tsuids.len(), "TSUIDs", limits::TSUIDS_MAX)?;
            }
        }
        Ok(())
    }
}

/// Refuses a number above a limit.
pub(super) fn at_most(number: usize, what: &'static str, limit: usize) -> Result<(), QueryError> {
    match number > limit {
        true => Err(QueryError::OverLimit { what, limit: limit as u64 }),
        false => Ok(()),
    }
}
