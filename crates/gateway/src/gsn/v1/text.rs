//! Sensors and their rows as text.

use serde_json::json;

use super::super::json_text::{push, push_json, push_value};
use super::super::read::{Column, Row};
use super::super::sensor::Sensor;
use super::super::time::{TimeFormat, TimeText};
use super::super::value::{Value, ValueKind};
use super::Format;

/// Writes sensors one after the other.
#[derive(Debug)]
pub(super) struct RestText {
    format: Format,
    times: TimeText,
    sensors: u64,
    rows: u64,
}

/// A field as an answer shows it: name, unit, type.
pub(super) type FieldAbout = (String, String, String);

impl RestText {
    pub(super) fn new(format: Format) -> Self {
        Self { format, times: TimeText::new(TimeFormat::Blank), sensors: 0, rows: 0 }
    }

    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        match self.format {
            Format::GeoJson => push(out, "{\"type\":\"FeatureCollection\",\"features\":["),
            Format::Json => push(out, "["),
            Format::Csv => {}
        }
    }

    pub(super) fn end(&self, out: &mut Vec<u8>) {
        match self.format {
            Format::GeoJson => push(out, "]}"),
            Format::Json => push(out, "]"),
            Format::Csv => {}
        }
    }

    /// Begins a sensor whose rows have these fields.
    pub(super) fn begin_sensor(&mut self, sensor: &Sensor, fields: &[FieldAbout], out: &mut Vec<u8>) {
        let separator = if self.sensors > 0 && self.format != Format::Csv { "," } else { "" };
        push(out, separator);
        (self.sensors, self.rows) = (self.sensors + 1, 0);
        if self.format == Format::Csv {
            return push_csv_head(sensor, fields, out);
        }
        let is_geo = self.format == Format::GeoJson;
        if is_geo {
            push(out, "{\"type\":\"Feature\",\"geometry\":");
            push_json(out, &json!({ "type": "Point", "coordinates": coordinates(sensor) }));
            push(out, ",\"properties\":");
        }
        let mut separator = '{';
        for (name, value) in about(sensor) {
            if is_geo && ["longitude", "latitude", "altitude"].contains(&name.as_str()) {
                continue;
            }
            push(out, &format!("{separator}{}:{}", json!(name), json!(value)));
            separator = ',';
        }
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, unit, type_name)| json!({ "name": name, "unit": unit, "type": type_name }))
            .collect();
        push(out, ",\"fields\":");
        push_json(out, &json!(fields));
    }

    /// A row with its time.
    pub(super) fn row(&mut self, row: &Row<'_>, kind: impl Fn(usize) -> ValueKind, out: &mut Vec<u8>) {
        let millis = row.millis();
        if self.format == Format::Csv {
            self.times.write(millis, out);
            push(out, &format!(",{millis}"));
            push_csv_values(row.values, kind, out);
            return out.push(b'\n');
        }
        self.open_row(out);
        out.push(b'"');
        self.times.write(millis, out);
        push(out, &format!("\",{millis}"));
        for (at, value) in row.values.iter().enumerate() {
            out.push(b',');
            push_value(*value, kind(at), out);
        }
        out.push(b']');
    }

    /// A row without its time: the newest values of a list.
    pub(super) fn values(
        &mut self,
        values: &[Option<Value<'_>>],
        kind: impl Fn(usize) -> ValueKind,
        out: &mut Vec<u8>,
    ) {
        if self.format == Format::Csv {
            push_csv_values(values, kind, out);
            return out.push(b'\n');
        }
        self.open_row(out);
        for (at, value) in values.iter().enumerate() {
            push(out, if at > 0 { "," } else { "" });
            push_value(*value, kind(at), out);
        }
        out.push(b']');
    }

    fn open_row(&mut self, out: &mut Vec<u8>) {
        push(out, if self.rows == 0 { ",\"values\":[[" } else { ",[" });
        self.rows += 1;
    }

    pub(super) fn end_sensor(&self, out: &mut Vec<u8>) {
        let rows = if self.rows > 0 { "]" } else { "" };
        match self.format {
            Format::GeoJson => push(out, &format!("{rows}}}}}")),
            Format::Json => push(out, &format!("{rows}}}")),
            Format::Csv => {}
        }
    }
}

/// The fields of rows with their times.
pub(super) fn fields_with_time(sensor: &Sensor, columns: &[Column]) -> Vec<FieldAbout> {
    let time = [("time", "time"), ("timestamp", "bigint")]
        .map(|(name, type_name)| (name.to_owned(), String::new(), type_name.to_owned()));
    time.into_iter().chain(fields(sensor, columns)).collect()
}

/// The fields of columns.
pub(super) fn fields(sensor: &Sensor, columns: &[Column]) -> Vec<FieldAbout> {
    let found = columns.iter().filter_map(|column| sensor.field(&column.name).ok());
    found.map(|field| (field.name.clone(), field.unit.clone(), field.type_name.clone())).collect()
}

/// The statement of an answer about a sensor.
fn about(sensor: &Sensor) -> Vec<(String, String)> {
    let own = [("vs_name", sensor.name()), ("is_public", "true")];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let predicates = sensor.addressing().iter();
    let predicates =
        predicates.map(|(key, value)| (key.trim().to_lowercase(), value.trim().to_owned())).filter(
            |(key, _)| !["vs_name", "is_public", "description", "fields", "values"].contains(&key.as_str()),
        );
    let description = ("description".to_owned(), sensor.description().to_owned());
    own.into_iter().chain(predicates).chain([description]).collect()
}

/// Longitude and latitude, 0 where they are not known, and the altitude if it is.
fn coordinates(sensor: &Sensor) -> Vec<f64> {
    let place = ["longitude", "latitude"].map(|key| sensor.coordinate(key).unwrap_or_default());
    place.into_iter().chain(sensor.coordinate("altitude")).collect()
}

fn push_csv_head(sensor: &Sensor, fields: &[FieldAbout], out: &mut Vec<u8>) {
    for (name, value) in about(sensor) {
        push(out, &format!("# {name}:{}\n", value.replace(['\r', '\n'], " ")));
    }
    let joined = |of: fn(&FieldAbout) -> &str| fields.iter().map(of).collect::<Vec<_>>().join(",");
    push(out, &format!("# fields:{}\n", joined(|(name, ..)| name)));
    push(out, &format!("# units:{}\n", joined(|(_, unit, _)| unit)));
    push(out, &format!("# types:{}\n", joined(|(.., type_name)| type_name)));
}

/// Values, each behind a comma.
fn push_csv_values(values: &[Option<Value<'_>>], kind: impl Fn(usize) -> ValueKind, out: &mut Vec<u8>) {
    for (at, value) in values.iter().enumerate() {
        out.push(b',');
        match value {
            None => push(out, "null"),
            Some(Value::Text(text)) => push(out, &text.replace(['\r', '\n'], " ")),
            Some(value) => kind(at).write(*value, out),
        }
    }
}
