//! JSON answers, and values in the shapes of ThingsBoard.

use std::io::{self, Write};

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use model::{Timestamp, Value, ValueRef};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use uuid::Uuid;
use wire::thingsboard::attributes::JsonValue;

use super::pieces::Pieces;
use crate::error::ApiError;
use crate::http::limits::ANSWER_BYTES_MAX;

/// A JSON answer with status 200; a refusal if it would be larger than [`ANSWER_BYTES_MAX`].
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match to_bytes(&self.0) {
            Ok(bytes) => json_response(bytes.into()),
            Err(error) => error.into_response(),
        }
    }
}

/// An answer whose body is JSON text already.
pub(crate) fn json_response(body: Body) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// The JSON text of `value`, if it is not longer than [`ANSWER_BYTES_MAX`].
pub(crate) fn to_bytes(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    let mut bounded = Bounded { bytes: Vec::new(), max: ANSWER_BYTES_MAX };
    bounded.put(value)?;
    Ok(bounded.bytes)
}

/// Entries of a JSON object. They are written one by one, so only the text is in memory and not all values.
#[derive(Debug, Default)]
pub(crate) struct Entries(Pieces);

impl Entries {
    /// Adds an entry of at most `bytes_max` bytes.
    pub(crate) fn entry(
        &mut self,
        key: &str,
        value: &impl Serialize,
        bytes_max: usize,
    ) -> Result<(), ApiError> {
        let mut bounded = Bounded { bytes: std::mem::take(self.begin(key)?), max: 0 };
        bounded.max = bounded.bytes.len() + bytes_max;
        let put = bounded.put(value);
        *self.0.open() = bounded.bytes;
        put
    }

    /// Adds an entry with JSON text as value.
    pub(crate) fn text_entry(&mut self, key: &str, value: Pieces) -> Result<(), ApiError> {
        self.begin(key)?;
        self.0.append(value);
        Ok(())
    }

    /// Begins an entry. Returns the buffer for its value.
    fn begin(&mut self, key: &str) -> Result<&mut Vec<u8>, ApiError> {
        if self.0.len() > 0 {
            self.0.copy(b",");
        }
        let name = to_bytes(&key)?;
        self.0.copy(&name);
        self.0.copy(b":");
        Ok(self.0.open())
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The object of all entries.
    pub(crate) fn object(parts: impl IntoIterator<Item = Self>) -> Pieces {
        let mut object = Pieces::default();
        object.copy(b"{");
        for Self(entries) in parts {
            if object.len() > 1 && entries.len() > 0 {
                object.copy(b",");
            }
            object.append(entries);
        }
        object.copy(b"}");
        object
    }
}

/// The error of an answer that would be too long.
pub(crate) fn too_long() -> ApiError {
    ApiError::argument(format!(
        "the answer would be longer than ANSWER_BYTES_MAX allows ({ANSWER_BYTES_MAX} bytes, less where memory is small); ask for fewer devices or keys, a smaller limit or longer intervals"
    ))
}

/// A writer with a bound.
#[derive(Debug)]
struct Bounded {
    bytes: Vec<u8>,
    max: usize,
}

impl Bounded {
    fn put(&mut self, value: &impl Serialize) -> Result<(), ApiError> {
        serde_json::to_writer(self, value).map_err(|_| too_long())
    }
}

impl Write for Bounded {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + part.len() > self.max {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// ThingsBoard's form of an id.
pub(crate) fn entity(kind: &'static str, id: Uuid) -> serde_json::Value {
    serde_json::json!({ "entityType": kind, "id": id })
}

/// A value in an answer: as a string, which is ThingsBoard's default, or in its own JSON type (`strict`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireValue<'a> {
    pub(crate) value: ValueRef<'a>,
    pub(crate) strict: bool,
}

impl Serialize for WireValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.value, self.strict) {
            (value, true) => JsonValue(value).serialize(serializer),
            (ValueRef::String(text) | ValueRef::Json(text), false) => serializer.serialize_str(text),
            (ValueRef::Bool(value), false) => serializer.collect_str(&value),
            (ValueRef::I64(value), false) => serializer.collect_str(&value),
            // The same digits as in strict answers.
            (ValueRef::F64(value), false) => {
                let text = serde_json::to_string(&value).map_err(serde::ser::Error::custom)?;
                serializer.serialize_str(&text)
            }
        }
    }
}

/// `{"ts":<ms>,"value":<value>}`; without a value `null`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TsValue<'a> {
    pub(crate) ts: Timestamp,
    pub(crate) value: Option<&'a Value>,
    pub(crate) strict: bool,
}

impl Serialize for TsValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("ts", &self.ts.millis())?;
        let strict = self.strict;
        map.serialize_entry("value", &self.value.map(|value| WireValue { value: value.as_ref(), strict }))?;
        map.end()
    }
}

/// A sequence whose items are produced while it is written.
pub(crate) struct Sequence<F>(pub(crate) F);

impl<F, I, T> Serialize for Sequence<F>
where
    F: Fn() -> I,
    I: Iterator<Item = T>,
    T: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(None)?;
        for item in (self.0)() {
            sequence.serialize_element(&item)?;
        }
        sequence.end()
    }
}

/// An object whose entries are produced while it is written.
pub(crate) struct Object<F>(pub(crate) F);

impl<F, I, K, V> Serialize for Object<F>
where
    F: Fn() -> I,
    I: Iterator<Item = (K, V)>,
    K: Serialize,
    V: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in (self.0)() {
            map.serialize_entry(&key, &value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: Value, strict: bool) -> String {
        serde_json::to_string(&WireValue { value: value.as_ref(), strict }).unwrap()
    }

    #[test]
    fn values_are_strings_unless_strict() {
        let json = r#"{"a": [1,  2.50]}"#;
        for (value, plain, strict) in [
            (Value::Bool(true), r#""true""#, "true"),
            (Value::I64(i64::MIN), r#""-9223372036854775808""#, "-9223372036854775808"),
            (Value::F64(5.0), r#""5.0""#, "5.0"),
            (Value::F64(0.1), r#""0.1""#, "0.1"),
            (Value::String("a\"b".into()), r#""a\"b""#, r#""a\"b""#),
            (Value::Json(json.into()), r#""{\"a\": [1,  2.50]}""#, json),
            (Value::Json("18446744073709551616".into()), r#""18446744073709551616""#, "18446744073709551616"),
        ] {
            assert_eq!(text(value.clone(), false), plain);
            assert_eq!(text(value, true), strict);
        }
    }

    #[test]
    fn invalid_json_text_cannot_break_the_answer() {
        assert_eq!(text(Value::Json("{\"a\":".into()), true), r#""{\"a\":""#);
    }

    #[test]
    fn an_absent_value_is_null() {
        let point = TsValue { ts: Timestamp::from_micros(1_500), value: None, strict: false };
        assert_eq!(serde_json::to_string(&point).unwrap(), r#"{"ts":1,"value":null}"#);
    }

    #[test]
    fn an_answer_stops_growing_at_its_bound() {
        let mut bounded = Bounded { bytes: Vec::new(), max: 4 };
        assert!(bounded.write_all(b"1234").is_ok());
        assert!(bounded.write_all(b"5").is_err());
    }
}
