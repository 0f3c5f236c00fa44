//! Attributes that a device publishes.

use model::Value;
use serde_json::value::RawValue;

use super::super::object::read_object;
use crate::telemetry::{PayloadError, read_value};

/// Keys and values, in the order of the payload.
pub type Attributes = Vec<(String, Value)>;

/// Reads `{"key":value}`. A key with `null` is left out; of a key that occurs twice the last value counts. The reader of the
/// result checks names and lengths.
pub fn read_publish(payload: &[u8], json_depth_max: usize) -> Result<Attributes, PayloadError> {
    read_object(payload, json_depth_max.saturating_add(1), "the payload", |members| {
        values(members.iter().map(|(key, raw)| (&**key, *raw)), json_depth_max)
    })
}

fn values<'a>(
    members: impl Iterator<Item = (&'a str, &'a RawValue)>,
    json_depth_max: usize,
) -> Result<Attributes, PayloadError> {
    let mut values = Vec::new();
    for (key, raw) in members {
        if let Some(value) = read_value(raw.get(), json_depth_max, |value| Ok(value.to_owned()))? {
            values.push((key.to_owned(), value));
        }
    }
    Ok(values)
}
