//! The common parts of the forms of an answer.

use super::super::java_number::write_integer;
use super::super::read::{Row, Selection};
use super::super::value::{Value, ValueKind};

/// The text of rows in one form.
pub(super) trait RowText {
    /// Begins the answer.
    fn begin(&mut self, out: &mut Vec<u8>);
    /// Begins a sensor.
    fn head(&mut self, selection: &Selection, out: &mut Vec<u8>);
    /// Names the fields, before the first row of a sensor.
    fn names(&mut self, selection: &Selection, out: &mut Vec<u8>);
    /// Writes a row of the sensor.
    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>);
    /// Ends a sensor.
    fn tail(&mut self, out: &mut Vec<u8>);
    /// Ends the answer.
    fn end(&mut self, out: &mut Vec<u8>);
}

/// The name of the column with the numbers of intervals.
pub(super) const INTERVAL: &str = "aggregation_interval";

/// How the fields of a sensor are written.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<ValueKind>);

impl Fields {
    pub(super) fn of(selection: &Selection) -> Self {
        Self((0..selection.fields.len()).map(|field| selection.kind(field)).collect())
    }

    /// The fields with their values. `text` appends a text of a value.
    #[inline]
    pub(super) fn write(
        &self,
        row: &Row<'_>,
        out: &mut Vec<u8>,
        before: impl Fn(&mut Vec<u8>),
        text: impl Fn(&str, &mut Vec<u8>),
        after: impl Fn(&mut Vec<u8>),
    ) {
        for (kind, value) in self.0.iter().zip(row.values) {
            before(out);
            match value {
                None => out.extend_from_slice(b"null"),
                Some(Value::Text(value)) => text(value, out),
                Some(value) => kind.write(*value, out),
            }
            after(out);
        }
        if let Some(interval) = row.interval {
            before(out);
            write_integer(interval, out);
            after(out);
        }
    }
}
