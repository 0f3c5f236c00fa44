//! A sensor as a GeoJSON feature whose properties have its rows.

use serde_json::{Value as Json, json};

use super::super::json_text::{push, push_json, push_value};
use super::super::read::{Column, Row};
use super::super::sensor::Sensor;
use super::super::time::{TimeFormat, TimeText};
use super::super::value::ValueKind;

/// The times of the oldest and of the newest row, in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extent {
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
}

/// Writes a feature: [`begin`](Self::begin), each row, then [`end`](Self::end).
#[derive(Debug)]
pub(super) struct FeatureText {
    times: TimeText,
    quoted: bool,
    rows: u64,
}

impl FeatureText {
    pub(super) fn new(format: TimeFormat) -> Self {
        Self { times: TimeText::new(format), quoted: format != TimeFormat::Unix, rows: 0 }
    }

    pub(super) fn begin(&mut self, sensor: &Sensor, out: &mut Vec<u8>) {
        self.rows = 0;
        push(out, "{\"type\":\"Feature\",\"properties\":{\"vs_name\":");
        push_json(out, &json!(sensor.name()));
        push(out, ",\"values\":[");
    }

    /// A row: its time, then its values. `kinds` are those of the values.
    pub(super) fn row(&mut self, row: &Row<'_>, kind: impl Fn(usize) -> ValueKind, out: &mut Vec<u8>) {
        push(out, if self.rows > 0 { ",[" } else { "[" });
        self.rows += 1;
        if self.quoted {
            out.push(b'"');
        }
        self.times.write(row.millis(), out);
        if self.quoted {
            out.push(b'"');
        }
        for (at, value) in row.values.iter().enumerate() {
            out.push(b',');
            push_value(*value, kind(at), out);
        }
        out.push(b']');
    }

    /// `fields` are the fields of the rows.
    pub(super) fn end(&self, sensor: &Sensor, fields: &[FieldAbout<'_>], extent: Extent, out: &mut Vec<u8>) {
        push(out, "],\"fields\":[");
        for (at, field) in fields.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            push_json(out, &json!({ "name": field.name, "type": field.type_name, "unit": field.unit }));
        }
        push(out, "],\"stats\":");
        push_json(out, &json!({ "start-datetime": extent.start, "end-datetime": extent.end }));
        for (name, value) in properties(sensor) {
            out.push(b',');
            push_json(out, &json!(name));
            out.push(b':');
            push_json(out, &json!(value));
        }
        push(out, "},\"geometry\":");
        push_json(out, &geometry(sensor));
        let rows = self.rows;
        push(out, &format!(",\"total_size\":{rows},\"page_size\":{rows}}}"));
    }
}

/// The statement of an answer about a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldAbout<'a> {
    pub(super) name: &'a str,
    pub(super) type_name: &'a str,
    /// `None` is not a unit.
    pub(super) unit: Option<&'a str>,
}

/// The field of the time.
pub(super) const TIME: FieldAbout<'static> =
    FieldAbout { name: "timestamp", type_name: "time", unit: Some("ms") };

/// The statement of an answer about the columns of a sensor.
pub(super) fn about<'a>(
    sensor: &'a Sensor,
    columns: impl Iterator<Item = &'a Column>,
) -> impl Iterator<Item = FieldAbout<'a>> {
    columns.filter_map(move |column| {
        let field = sensor.field(&column.name).ok()?;
        let unit = Some(field.unit.as_str()).filter(|unit| !unit.is_empty());
        Some(FieldAbout { name: &field.name, type_name: &field.type_name, unit })
    })
}

/// The predicates and the description, in their order.
pub(super) fn properties(sensor: &Sensor) -> Vec<(String, String)> {
    let predicates = sensor.addressing().iter();
    let predicates = predicates.map(|(key, value)| (key.to_lowercase(), value.trim().to_owned()));
    // They would be members of the feature twice.
    let own = ["vs_name", "values", "fields", "stats", "description"];
    let description = ("description".to_owned(), sensor.description().to_owned());
    predicates.filter(|(key, _)| !own.contains(&key.as_str())).chain([description]).collect()
}

/// A point if the sensor has a place, else null.
fn geometry(sensor: &Sensor) -> Json {
    match (sensor.coordinate("longitude"), sensor.coordinate("latitude")) {
        (Some(longitude), Some(latitude)) => {
            let altitude = sensor.coordinate("altitude").unwrap_or(0.0);
            json!({ "type": "Point", "coordinates": [longitude, latitude, altitude] })
        }
        _ => Json::Null,
    }
}
