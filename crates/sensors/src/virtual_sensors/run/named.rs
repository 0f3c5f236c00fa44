//! A row with the names of its fields.

use super::super::sql::Datum;

/// A row with the names of its fields, on its way from a stream to the output.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) timed: i64,
    pub(super) fields: Vec<(String, Datum)>,
}
