//! Rows as GSN's XML.

use super::super::read::{Row, Selection};
use super::super::time::{TimeFormat, TimeText};
use super::super::xml::{comment, escape, escaped};
use super::form::{Fields, INTERVAL, RowText};
use super::query_text::query_text;

/// Rows as XML.
#[derive(Debug)]
pub(super) struct Xml {
    times: TimeText,
    fields: Fields,
}

impl Xml {
    pub(super) fn new(times: TimeFormat) -> Self {
        Self { times: TimeText::new(times), fields: Fields::default() }
    }
}

impl RowText for Xml {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<result>\n");
    }

    fn head(&mut self, selection: &Selection, out: &mut Vec<u8>) {
        let sensor = &selection.sensor;
        note(&query_text(selection, false), out);
        for (key, value) in sensor.addressing() {
            note(&format!("{}:{value}", key.to_lowercase()), out);
        }
        note(&format!("description:{}", sensor.description()), out);
        out.extend_from_slice(format!("\t<data vsname=\"{}\">\n", escaped(sensor.name())).as_bytes());
        self.fields = Fields::of(selection);
    }

    fn names(&mut self, selection: &Selection, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\t\t<header>\n");
        let fields = selection.fields.iter().map(|field| (field.unit.as_str(), field.name.as_str()));
        let interval = selection.aggregation.is_some().then_some(("null", INTERVAL));
        for (unit, name) in std::iter::once(("", "time")).chain(fields).chain(interval) {
            let line = format!("\t\t\t<field unit=\"{}\">{}</field>\n", escaped(unit), escaped(name));
            out.extend_from_slice(line.as_bytes());
        }
        out.extend_from_slice(b"\t\t</header>\n");
    }

    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\t\t<tuple>\n");
        before(out);
        self.times.write(row.millis(), out);
        after(out);
        self.fields.write(row, out, before, escape, after);
        out.extend_from_slice(b"\t\t</tuple>\n");
    }

    fn tail(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\t</data>\n");
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"</result>\n");
    }
}

fn before(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\t\t\t<field>");
}

fn after(out: &mut Vec<u8>) {
    out.extend_from_slice(b"</field>\n");
}

fn note(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\t<!-- {} -->\n", comment(text)).as_bytes());
}
