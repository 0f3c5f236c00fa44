//! A row with the names of its fields.

use super::super::sql::Datum;
use super::super::sql::datum::Number;

/// A row with the names of its fields, on its way from a stream to the output.
#[derive(Debug, Clone)]
pub(super) struct NamedRow {
    pub(super) timed: i64,
    pub(super) fields: Vec<(String, Datum)>,
}

impl NamedRow {
    /// The first field, as a number.
    pub(super) fn first_number(&self) -> Result<f64, String> {
        let first = self.fields.first().map(|(_, datum)| datum.number()).transpose()?.flatten();
        first.map(Number::as_f64).ok_or_else(|| "the first field of the stream is not a number".to_owned())
    }
}
