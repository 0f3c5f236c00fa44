//! Requests for attributes, their answers, and changes of shared attributes.

use model::ValueRef;

use super::super::attributes::Request;
use super::fields::{put_bytes, put_double, put_number, put_text};
use super::{ProtobufError, two_texts};

/// An attribute with the time of its last change.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Its key.
    pub key: &'a str,
    /// Its value.
    pub value: ValueRef<'a>,
    /// When it was set, in milliseconds since the epoch.
    pub ts_ms: i64,
}

/// New values of shared attributes: `AttributeUpdateNotificationMsg`.
pub fn push_of_changed<'a>(changed: impl IntoIterator<Item = Entry<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    put_entries(&mut out, 1, changed);
    out
}

/// Deleted shared attributes: `AttributeUpdateNotificationMsg`.
pub fn push_of_deleted(keys: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    keys.iter().for_each(|key| put_bytes(&mut out, 2, key.as_bytes()));
    out
}

/// Reads a request for attributes: `AttributesRequest`, with commas between keys. An empty list is none.
///
/// # Errors
/// The payload is not such a message.
pub fn read_request(payload: &[u8]) -> Result<Request, ProtobufError> {
    let [client, shared] = two_texts(payload, "AttributesRequest")?;
    let keys = |text: &str| {
        let keys = text.split(',').filter(|key| !key.is_empty()).map(str::to_owned);
        (!text.is_empty()).then(|| keys.collect())
    };
    Ok(Request { client: keys(client), shared: keys(shared) })
}

/// The answer to the request with the number `id`: `GetAttributeResponseMsg`.
pub fn response<'a>(
    id: i32,
    request: &Request,
    client: impl IntoIterator<Item = Entry<'a>>,
    shared: impl IntoIterator<Item = Entry<'a>>,
) -> Vec<u8> {
    let asked: usize = [&request.client, &request.shared].into_iter().flatten().map(Vec::len).sum();
    let mut out = Vec::new();
    put_number(&mut out, 1, u64::from(id.unsigned_abs()));
    put_entries(&mut out, 2, client);
    put_entries(&mut out, 3, shared);
    put_number(&mut out, 4, u64::from(asked > 1));
    out
}

/// Appends a list of `TsKvProto`.
fn put_entries<'a>(out: &mut Vec<u8>, field: u32, entries: impl IntoIterator<Item = Entry<'a>>) {
    for entry in entries {
        let mut timed = Vec::new();
        put_number(&mut timed, 1, entry.ts_ms.cast_unsigned());
        put_bytes(&mut timed, 2, &key_value(entry.key, entry.value));
        put_bytes(out, field, &timed);
    }
}

/// `KeyValueProto`: the key, the type, and a field for each type.
fn key_value(key: &str, value: ValueRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, 1, key);
    match value {
        ValueRef::Bool(flag) => put_number(&mut out, 3, u64::from(flag)),
        ValueRef::I64(number) => {
            put_number(&mut out, 2, 1);
            put_number(&mut out, 4, number.cast_unsigned());
        }
        ValueRef::F64(number) => {
            put_number(&mut out, 2, 2);
            put_double(&mut out, 5, number);
        }
        ValueRef::String(text) => {
            put_number(&mut out, 2, 3);
            put_text(&mut out, 6, text);
        }
        ValueRef::Json(text) => {
            put_number(&mut out, 2, 4);
            put_text(&mut out, 7, text);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn entry<'a>(key: &'a str, value: ValueRef<'a>) -> Entry<'a> {
        Entry { key, value, ts_ms: 5 }
    }

    #[test]
    fn attributes_are_lists_of_keys_with_values_of_five_types() {
        // Vectors by hand: tag = number << 3 | type.
        for (value, expected) in [
            (ValueRef::Bool(true), "0a09 0805 1205 0a0161 1801"),
            (ValueRef::Bool(false), "0a07 0805 1203 0a0161"),
            (ValueRef::I64(-1), "0a14 0805 1210 0a0161 1001 20ffffffffffffffffff01"),
            (ValueRef::F64(1.0), "0a12 0805 120e 0a0161 1002 29000000000000f03f"),
            (ValueRef::String("x"), "0a0c 0805 1208 0a0161 1003 320178"),
            (ValueRef::Json("[]"), "0a0d 0805 1209 0a0161 1004 3a025b5d"),
        ] {
            assert_eq!(hex(&push_of_changed([entry("a", value)])), expected.replace(' ', ""), "{value:?}");
        }
        assert_eq!(hex(&push_of_deleted(&["a", "bc"])), "120161 12026263".replace(' ', ""));
    }

    #[test]
    fn an_answer_has_its_number_and_two_lists() {
        let shared = [entry("a", ValueRef::Bool(true))];
        let answer = |keys: &[&str]| {
            let keys = keys.iter().map(|key| (*key).to_owned()).collect();
            hex(&response(300, &Request { client: None, shared: Some(keys) }, [], shared))
        };
        assert_eq!(answer(&["a"]), "08ac02 1a09 0805 1205 0a0161 1801".replace(' ', ""));
        assert_eq!(answer(&["a", "b"]), "08ac02 1a09 0805 1205 0a0161 1801 2001".replace(' ', ""));
    }

    #[test]
    fn a_request_has_two_lists() {
        let request = read_request(b"\x0a\x03a,b\x12\x01c\x18\x07").unwrap();
        let texts = |keys: &[&str]| Some(keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
        assert_eq!((request.client, request.shared), (texts(&["a", "b"]), texts(&["c"])));
        assert_eq!(read_request(b""), Ok(Request::default()));
    }
}
