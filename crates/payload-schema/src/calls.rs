//! Schemas of calls of devices, and of their answers.

use std::sync::LazyLock;

use prost_reflect::Kind;

use super::schema::MessageSchema;

/// ThingsBoard's schema of calls for profiles without one.
const DEFAULT_CALLS: &str = r#"
    syntax = "proto3";
    package rpc;
    message RpcRequestMsg {
        optional string method = 1;
        optional int32 requestId = 2;
        optional string params = 3;
    }"#;

/// ThingsBoard's schema of answers for profiles without one.
const DEFAULT_ANSWERS: &str = r#"
    syntax = "proto3";
    package rpc;
    message RpcResponseMsg {
        optional string payload = 1;
    }"#;

/// The type of calls: a message with the fields `method`, `requestId` and `params`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallSchema {
    message: MessageSchema,
    /// Whether the parameters are text.
    has_text: bool,
}

/// The schema of calls of a profile without one.
pub(super) fn default_calls() -> &'static CallSchema {
    static DEFAULT: LazyLock<CallSchema> =
        LazyLock::new(|| CallSchema::compile(DEFAULT_CALLS).expect("BUG: the schema is complete"));
    &DEFAULT
}

/// The schema of answers of a profile without one.
pub(super) fn default_answers() -> &'static MessageSchema {
    static DEFAULT: LazyLock<MessageSchema> =
        LazyLock::new(|| MessageSchema::compile(DEFAULT_ANSWERS).expect("BUG: the schema is complete"));
    &DEFAULT
}

impl CallSchema {
    /// Compiles a schema, the text of a `.proto` file.
    ///
    /// # Errors
    /// The fault, for the author of the schema.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        let message = MessageSchema::compile(text)?;
        for (name, kind, wanted) in [
            ("method", Some(Kind::String), "string "),
            ("requestId", Some(Kind::Int32), "int32 "),
            ("params", None, ""),
        ] {
            let found = message.kind_of(name);
            if found.is_none() || (kind.is_some() && found != kind) {
                return Err(format!("has no field \"{wanted}{name}\" in its last message; add it"));
            }
        }
        let has_text = message.kind_of("params") == Some(Kind::String);
        Ok(Self { message, has_text })
    }

    /// A call as a message. `params` is JSON text; a number or a flag becomes a text if the parameters are text, as in ThingsBoard.
    ///
    /// # Errors
    /// The parameters do not fit the schema. The text is for the caller.
    pub(super) fn encode(&self, id: i32, method: &str, params: &str) -> Result<Vec<u8>, String> {
        let method = json_text(method);
        let params = match self.has_text && is_number_or_flag(params) {
            true => &json_text(params),
            false => params,
        };
        self.message.bytes(&format!(r#"{{"method":{method},"requestId":{id},"params":{params}}}"#)).map_err(
            |fault| format!("the call does not fit the schema of calls of the device's profile: {fault}"),
        )
    }
}

fn is_number_or_flag(json: &str) -> bool {
    json.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | 't' | 'f'))
}

fn json_text(text: &str) -> String {
    serde_json::to_string(text).expect("BUG: text is always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPIO: &str = r#"
        syntax = "proto3";
        message Call {
            message Gpio { int32 pin = 1; bool on = 2; }
            string method = 1;
            int32 requestId = 2;
            Gpio params = 3;
        }"#;

    #[test]
    fn a_call_has_a_method_a_number_and_parameters() {
        let call = CallSchema::compile(GPIO).unwrap();
        let bytes = call.encode(5, "set", r#"{"pin":7,"on":true}"#).unwrap();
        assert_eq!(bytes, b"\x0a\x03set\x10\x05\x1a\x04\x08\x07\x10\x01");
        assert_eq!(call.encode(5, "set", "null").unwrap(), b"\x0a\x03set\x10\x05");
        for (text, params) in [("\"on\"", "on"), ("true", "true"), ("7", "7")] {
            let expected =
                [b"\x0a\x01m\x10\x01\x1a", [params.len() as u8].as_slice(), params.as_bytes()].concat();
            assert_eq!(default_calls().encode(1, "m", text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn parameters_that_do_not_fit_are_refused() {
        let call = CallSchema::compile(GPIO).unwrap();
        for params in [r#"{"pin":"x"}"#, r#"{"pin":4294967296}"#, r#"{"led":1}"#, "[]", "7", "\"pin\""] {
            let refused = call.encode(5, "set", params).unwrap_err();
            assert!(refused.contains("\"Call\""), "{params}: {refused}");
        }
        let refused = default_calls().encode(1, "m", r#"{"pin":7}"#).unwrap_err();
        assert!(refused.contains("\"rpc.RpcRequestMsg\""), "{refused}");
    }

    #[test]
    fn a_schema_without_the_fields_of_a_call_is_refused() {
        for (fields, part) in [
            ("int32 requestId = 2; string params = 3;", "\"string method\""),
            ("string method = 1; string requestId = 2; string params = 3;", "\"int32 requestId\""),
            ("string method = 1; int32 requestId = 2;", "\"params\""),
        ] {
            let refused = CallSchema::compile(&format!(r#"syntax = "proto3"; message Call {{ {fields} }}"#))
                .unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
    }
}
