//! JSON, written piece by piece.

use serde_json::Value as Json;
use serde_json::json;

use super::value::{Value, ValueKind};
use crate::text::{F64_BYTES_MAX, write_f64};

/// Appends a text as it is.
pub(super) fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends a value; null if there is none.
pub(super) fn push_value(value: Option<Value<'_>>, kind: ValueKind, out: &mut Vec<u8>) {
    match (kind, value) {
        (_, None) => push(out, "null"),
        (_, Some(Value::Text(text))) => push_json(out, &json!(text)),
        (ValueKind::Double | ValueKind::Float, Some(Value::I64(number))) => push_number(number as f64, out),
        (ValueKind::Integer, Some(value @ Value::F64(number))) if number.is_finite() => {
            kind.write(value, out)
        }
        (_, Some(Value::F64(number))) => push_number(number, out),
        (_, Some(value)) => kind.write(value, out),
    }
}

/// A number; null if JSON has none.
fn push_number(number: f64, out: &mut Vec<u8>) {
    let mut room = [0; F64_BYTES_MAX];
    let length = write_f64(number, &mut room);
    out.extend_from_slice(&room[..length]);
}

/// Appends JSON.
pub(super) fn push_json(out: &mut Vec<u8>, value: &Json) {
    out.extend_from_slice(value.to_string().as_bytes());
}
