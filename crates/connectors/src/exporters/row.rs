//! A row as JSON, for brokers and HTTP addresses, and its values as text.

use model::Value;
use serde_json::{Map, Value as Json, json};
use virtual_sensors::{OutputRow, SensorOutput};

/// `{"ts": MILLISECONDS, "values": {…}}`, the form in which devices send rows. A field without a value is absent.
pub(super) fn row(output: &SensorOutput, row: &OutputRow) -> Json {
    let values = output.fields.iter().zip(&row.values);
    let values = values.filter_map(|(field, value)| Some((field.name.clone(), json_of(value.as_ref()?))));
    json!({ "ts": row.us.div_euclid(1_000), "values": values.collect::<Map<_, _>>() })
}

/// The text of a field of a row, if it has one.
pub(super) fn text<'r>(output: &SensorOutput, row: &'r OutputRow, name: &str) -> Option<&'r str> {
    let at = output.fields.iter().position(|field| field.name == name)?;
    match row.values.get(at)? {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// A value as people read it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) | Value::Json(text) => text.to_string(),
        other => json_of(other).to_string(),
    }
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Bool(flag) => (*flag).into(),
        Value::I64(number) => (*number).into(),
        Value::F64(number) => (*number).into(),
        Value::String(text) => text.to_string().into(),
        Value::Json(text) => serde_json::from_str(text).unwrap_or_else(|_| text.to_string().into()),
    }
}
