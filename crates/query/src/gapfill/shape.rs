//! Describes the rows that gap filling takes: which columns are keys, time and filled values, and which buckets there are.

use std::fmt;

use arrow_schema::Schema;

use super::buckets::Buckets;

/// How a column is filled in rows that the operator makes, and where the column is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash)]
pub(crate) enum Fill {
    /// With the last value that is not NULL.
    Carry,
    /// With the point on the straight line between the values before and after; with NULL where one of them is missing.
    Line,
}

/// The columns of the aggregation's rows, by index, and the buckets that the operator fills.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Hash)]
pub(crate) struct Shape {
    /// The group keys other than the time. Each combination of their values has its own buckets.
    pub(crate) keys: Vec<usize>,
    /// The column with the bucket's start.
    pub(crate) time: usize,
    /// The columns that are filled.
    pub(crate) fills: Vec<(usize, Fill)>,
    pub(crate) buckets: Buckets,
}

impl Shape {
    /// Writes the shape for EXPLAIN.
    pub(crate) fn describe(&self, schema: &Schema, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |index: usize| schema.field(index).name().as_str();
        let keys: Vec<_> = self.keys.iter().map(|key| name(*key)).collect();
        let fills: Vec<_> = self.fills.iter().map(|(column, _)| name(*column)).collect();
        write!(f, "time={}, keys=[{}]", name(self.time), keys.join(", "))?;
        write!(f, ", fills=[{}], buckets={}", fills.join(", "), self.buckets.count())?;
        match self.buckets.first_start() {
            Some(start) => write!(f, ", from={start}"),
            None => Ok(()),
        }
    }
}
