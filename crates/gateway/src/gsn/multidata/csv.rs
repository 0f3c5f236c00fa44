//! Rows as GSN's CSV: lines of `#` about the sensor, then a line for each row, without quotes.

use super::super::read::{Row, Selection};
use super::super::time::{TimeFormat, TimeText};
use super::form::{Fields, INTERVAL, RowText};
use super::query_text::query_text;

/// Rows as CSV.
#[derive(Debug)]
pub(super) struct Csv {
    delimiter: Vec<u8>,
    times: TimeText,
    fields: Fields,
}

impl Csv {
    pub(super) fn new(delimiter: &str, times: TimeFormat) -> Self {
        Self { delimiter: delimiter.into(), times: TimeText::new(times), fields: Fields::default() }
    }

    fn names_line<'a>(&self, first: &str, names: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"# ");
        out.extend_from_slice(first.as_bytes());
        for name in names {
            out.extend_from_slice(&self.delimiter);
            one_line(name, out);
        }
        out.push(b'\n');
    }
}

impl RowText for Csv {
    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn head(&mut self, selection: &Selection, out: &mut Vec<u8>) {
        let sensor = &selection.sensor;
        about("vsname", sensor.name(), out);
        about("query", &query_text(selection, true), out);
        for (key, value) in sensor.addressing() {
            about(&key.to_lowercase(), value, out);
        }
        about("description", sensor.description(), out);
        self.fields = Fields::of(selection);
    }

    fn names(&mut self, selection: &Selection, out: &mut Vec<u8>) {
        let interval = selection.aggregation.is_some();
        let names = selection.fields.iter().map(|field| field.name.as_str());
        self.names_line("time", names.chain(interval.then_some(INTERVAL)), out);
        let units = selection.fields.iter().map(|field| field.unit.as_str());
        // GSN knows no unit of this column.
        self.names_line("", units.chain(interval.then_some("null")), out);
    }

    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) {
        self.times.write(row.millis(), out);
        let before = |out: &mut Vec<u8>| out.extend_from_slice(&self.delimiter);
        self.fields.write(row, out, before, one_line, |_| {});
        out.push(b'\n');
    }

    fn tail(&mut self, _: &mut Vec<u8>) {}

    fn end(&mut self, _: &mut Vec<u8>) {}
}

/// A line about a sensor.
fn about(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"# ");
    one_line(name, out);
    out.push(b':');
    one_line(value, out);
    out.push(b'\n');
}

/// Appends a text. Line breaks become blanks, so that a row stays a line.
fn one_line(text: &str, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(text.as_bytes());
    for byte in &mut out[begin..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}
