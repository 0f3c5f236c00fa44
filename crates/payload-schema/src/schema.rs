//! A schema: the type of a message, and messages of this type as JSON.

use std::fmt;

use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor, SerializeOptions, Value};

use super::limits::{SCHEMA_BRACKETS_MAX, SCHEMA_BYTES_MAX};

/// The name under which a schema is compiled, for errors.
const FILE: &str = "schema.proto";

/// Names as in the schema, and numbers as numbers.
const JSON: SerializeOptions =
    SerializeOptions::new().stringify_64_bit_integers(false).use_proto_field_name(true);

/// The type of a message: the last message of a schema, as in ThingsBoard.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct MessageSchema(MessageDescriptor);

impl fmt::Debug for MessageSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageSchema").field(&self.0.full_name()).finish()
    }
}

impl MessageSchema {
    /// Compiles a schema, the text of a `.proto` file. It may import Google's well-known types.
    ///
    /// # Errors
    /// The fault, for the author of the schema.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > SCHEMA_BYTES_MAX {
            let bytes = text.len();
            return Err(format!("has {bytes} bytes, the limit is {SCHEMA_BYTES_MAX} (SCHEMA_BYTES_MAX)"));
        }
        let brackets = text.bytes().filter(|byte| b"{[<(".contains(byte)).count();
        if brackets > SCHEMA_BRACKETS_MAX {
            return Err(format!(
                "has {brackets} opening brackets, the limit is {SCHEMA_BRACKETS_MAX} (SCHEMA_BRACKETS_MAX)"
            ));
        }
        let file = protox_parse::parse(FILE, text).map_err(|error| format!("cannot be read: {error}"))?;
        let mut pool = DescriptorPool::global();
        pool.add_file_descriptor_proto(file).map_err(|error| format!("cannot be compiled: {error}"))?;
        let messages = pool.get_file_by_name(FILE).and_then(|file| file.messages().last());
        messages.map(Self).ok_or_else(|| "has no message; add one".to_owned())
    }

    /// A message as JSON text. Fields without a value are left out.
    ///
    /// # Errors
    /// The bytes are not a message of the type: they cannot be decoded, or have fields that the type does not have.
    pub(super) fn json(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let name = self.0.full_name();
        let message = DynamicMessage::decode(self.0.clone(), bytes)
            .map_err(|error| format!("the payload is not a message {name:?} of Protobuf: {error}"))?;
        if let Some(number) = unknown_field(&message) {
            return Err(format!(
                "the payload has the field {number}, which the message {name:?} does not have; add it to the schema of the profile"
            ));
        }
        let mut text = Vec::new();
        message
            .serialize_with_options(&mut serde_json::Serializer::new(&mut text), &JSON)
            .map_err(|error| format!("the message {name:?} has no form as JSON: {error}"))?;
        Ok(text)
    }

    /// The bytes of a message that is given as JSON text.
    ///
    /// # Errors
    /// The JSON is not a message of the type.
    pub(super) fn bytes(&self, json: &str) -> Result<Vec<u8>, String> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let message = DynamicMessage::deserialize(self.0.clone(), &mut reader)
            .map_err(|error| format!("it is not a message {:?}: {error}", self.0.full_name()))?;
        Ok(message.encode_to_vec())
    }

    /// The type of a field, or of its elements; `None` if there is no such field.
    pub(super) fn kind_of(&self, field: &str) -> Option<Kind> {
        self.0.get_field_by_json_name(field).map(|field| field.kind())
    }
}

/// The number of a field that a message, or one in it, has and its type does not: its value would be lost.
fn unknown_field(message: &DynamicMessage) -> Option<u32> {
    let own = message.unknown_fields().next().map(prost_reflect::UnknownField::number);
    own.or_else(|| message.fields().find_map(|(_, value)| unknown_in(value)))
}

fn unknown_in(value: &Value) -> Option<u32> {
    match value {
        Value::Message(message) => unknown_field(message),
        Value::List(values) => values.iter().find_map(unknown_in),
        Value::Map(values) => values.values().find_map(unknown_in),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"
        syntax = "proto3";
        package fleet;
        enum Gear { PARK = 0; DRIVE = 1; }
        message Wheel { double bar = 1; }
        message Truck {
            optional double speed = 1;
            optional int64 odometer = 2;
            string driver_name = 3;
            repeated Wheel wheels = 4;
            optional Gear gear = 5;
            bytes raw = 6;
            map<string, int32> counts = 7;
        }
    "#;

    fn json(hex: &str) -> Result<String, String> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        let schema = MessageSchema::compile(SCHEMA).unwrap();
        schema.json(&bytes).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_message_is_json_with_the_names_of_its_schema() {
        // Vectors by hand: tag = number << 3 | type.
        assert_eq!(json("09 0000000000404a40").unwrap(), r#"{"speed":52.5}"#);
        let large = json("10 ffffffffffffffff7f 1a 03 616e6e 28 01").unwrap();
        assert_eq!(large, r#"{"odometer":9223372036854775807,"driver_name":"ann","gear":"DRIVE"}"#);
        assert_eq!(json("22 09 09 0000000000000040 22 00").unwrap(), r#"{"wheels":[{"bar":2.0},{}]}"#);
        assert_eq!(
            json("09 0000000000000000 32 02 ff00 3a 05 0a 01 61 10 07").unwrap(),
            r#"{"speed":0.0,"raw":"/wA=","counts":{"a":7}}"#
        );
        assert_eq!(json("").unwrap(), "{}");
    }

    #[test]
    fn what_is_not_a_message_of_the_type_is_refused_with_its_reason() {
        for (hex, part) in [
            ("0a", "not a message \"fleet.Truck\""),
            ("0a 01 61", "not a message \"fleet.Truck\""),
            ("48 01", "the field 9"),
            ("22 02 10 01", "the field 2"),
        ] {
            let refused = json(hex).unwrap_err();
            assert!(refused.contains(part), "{hex}: {refused}");
        }
    }

    #[test]
    fn a_wrong_schema_is_refused() {
        let (nested, blank) = ("message A {".repeat(600), " ".repeat(SCHEMA_BYTES_MAX + 1));
        for (text, part) in [
            ("syntax = \"proto3\"; message {", "cannot be read"),
            ("syntax = \"proto3\"; message A { B b = 1; }", "cannot be compiled"),
            ("syntax = \"proto3\"; message A { reserved 0199; }", "cannot be read"),
            ("syntax = \"proto3\"; enum A { B = 0; }", "has no message"),
            ("syntax = \"proto3\"; import \"/etc/passwd\"; message A {}", "cannot be"),
            (nested.as_str(), "SCHEMA_BRACKETS_MAX"),
            (blank.as_str(), "SCHEMA_BYTES_MAX"),
        ] {
            let refused = MessageSchema::compile(text).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
        let imports = "syntax = \"proto3\"; import \"google/protobuf/wrappers.proto\"; message A { google.protobuf.DoubleValue x = 1; }";
        let schema = MessageSchema::compile(imports).unwrap();
        assert_eq!(schema.json(&[0x0a, 0]).unwrap(), br#"{"x":0.0}"#);
    }
}
