//! What the server sends: attributes that were asked for, and changes of shared ones.

use model::ValueRef;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

/// The answer to a request of a device: `{"client":{..},"shared":{..}}`. A scope without attributes has no member.
pub fn response(client: &[(&str, ValueRef<'_>)], shared: &[(&str, ValueRef<'_>)]) -> Vec<u8> {
    let scopes = [("client", client), ("shared", shared)];
    object(
        scopes
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(name, values)| (name, Values(values))),
    )
}

/// The answer to a request of a gateway for `asked` keys: `{"id":1,"device":"A","value":v}` for one key, with `"values":{..}` for
/// several. Without any found attribute it has neither.
pub fn gateway_response(id: i32, device: &str, asked: usize, found: &[(&str, ValueRef<'_>)]) -> Vec<u8> {
    let head = [("id", Member::Id(id)), ("device", Member::Text(device))];
    let body = match found {
        [] => None,
        [(_, value)] if asked == 1 => Some(("value", Member::Value(JsonValue(*value)))),
        _ => Some(("values", Member::Values(Values(found)))),
    };
    object(head.into_iter().chain(body))
}

/// New values of shared attributes: `{"key":value}`.
pub fn push_of_changed(changed: &[(&str, ValueRef<'_>)]) -> Vec<u8> {
    bytes(&Values(changed))
}

/// Deleted shared attributes: `{"deleted":["key"]}`.
pub fn push_of_deleted(keys: &[&str]) -> Vec<u8> {
    object([("deleted", keys)])
}

/// New values of shared attributes of a device of a gateway: `{"device":"A","data":{"key":value}}`.
pub fn push_of_changed_to_gateway(device: &str, changed: &[(&str, ValueRef<'_>)]) -> Vec<u8> {
    object([("device", Member::Text(device)), ("data", Member::Values(Values(changed)))])
}

/// Deleted shared attributes of a device of a gateway: `{"device":"A","data":{"deleted":["key"]}}`.
pub fn push_of_deleted_to_gateway(device: &str, keys: &[&str]) -> Vec<u8> {
    object([("device", Member::Text(device)), ("data", Member::Deleted(keys))])
}

/// A value in its own JSON type.
#[derive(Debug, Clone, Copy)]
pub struct JsonValue<'a>(pub ValueRef<'a>);

impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ValueRef::Bool(value) => serializer.serialize_bool(value),
            ValueRef::I64(value) => serializer.serialize_i64(value),
            ValueRef::F64(value) => serializer.serialize_f64(value),
            ValueRef::String(text) => serializer.serialize_str(text),
            ValueRef::Json(text) => match serde_json::from_str::<&RawValue>(text) {
                Ok(raw) => raw.serialize(serializer),
                // Text that is not JSON, which no door writes. A string is better than no answer.
                Err(_) => serializer.serialize_str(text),
            },
        }
    }
}

/// Attributes as an object.
struct Values<'a>(&'a [(&'a str, ValueRef<'a>)]);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, JsonValue(*value))))
    }
}

/// A member of a payload for a gateway.
enum Member<'a> {
    Id(i32),
    Text(&'a str),
    Value(JsonValue<'a>),
    Values(Values<'a>),
    Deleted(&'a [&'a str]),
}

impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Id(id) => serializer.serialize_i32(*id),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Value(value) => value.serialize(serializer),
            Self::Values(values) => values.serialize(serializer),
            Self::Deleted(keys) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("deleted", keys)?;
                map.end()
            }
        }
    }
}

fn object<'a, V: Serialize>(members: impl IntoIterator<Item = (&'a str, V)>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut json = serde_json::Serializer::new(&mut out);
    json.collect_map(members).expect("BUG: keys are text, and a vector has room");
    out
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("BUG: keys are text, and a vector has room")
}
