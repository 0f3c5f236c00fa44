//! Objects of payloads: their members as JSON text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::telemetry::{Failed, Key, PayloadError, read_json};

/// Calls `read` with the members of a payload that is one object. A member that occurs twice is there twice.
pub(super) fn read_object<T>(
    payload: &[u8],
    depth_max: usize,
    what: &str,
    read: impl Fn(&[Member<'_>]) -> Result<T, PayloadError>,
) -> Result<T, PayloadError> {
    read_json(payload, depth_max, |text| {
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| Failed::Syntax(json(&error)))?;
        members(raw, what).and_then(|members| read(&members)).map_err(Failed::Refused)
    })
}

/// A member: its name, and its value as JSON text.
pub(super) type Member<'a> = (Cow<'a, str>, &'a RawValue);

/// The member of this name; the last one if it occurs twice.
pub(super) fn find<'a>(members: &[Member<'a>], name: &str) -> Option<&'a RawValue> {
    members.iter().rev().find(|(key, _)| key == name).map(|(_, raw)| *raw)
}

/// The members of an object.
pub(super) fn members<'a>(raw: &'a RawValue, what: &str) -> Result<Vec<Member<'a>>, PayloadError> {
    if !raw.get().starts_with('{') {
        let found = kind(raw);
        return Err(PayloadError::Shape(format!("{what} must be an object, found {found}")));
    }
    let mut json_text = serde_json::Deserializer::from_str(raw.get());
    json_text.deserialize_map(Members).map_err(|error| json(&error))
}

/// A value that must be text.
pub(super) fn text(raw: &RawValue, what: &str) -> Result<String, PayloadError> {
    if !raw.get().starts_with('"') {
        return Err(PayloadError::Shape(format!("{what} must be a text, found {}", kind(raw))));
    }
    serde_json::from_str(raw.get()).map_err(|error| json(&error))
}

/// What a value is, in words.
pub(super) fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

fn json(error: &serde_json::Error) -> PayloadError {
    PayloadError::Json(error.to_string())
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = map.next_key_seed(Key)? {
            members.push((key, map.next_value()?));
        }
        Ok(members)
    }
}
