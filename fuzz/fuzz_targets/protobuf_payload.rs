//! Protobuf payloads of devices: the messages that ThingsBoard defines, and those of a profile's own schema.
//!
//! The first byte of the input says whether a schema comes first, up to a zero byte; the rest is the payload.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use payload_schema::{PayloadForm, PayloadKind, PayloadSchemas};
use serde_json::{Value as Json, json};
use wire::thingsboard::protobuf::{read_call, read_claim, read_provision_or_json, read_request};

/// Every kind of field that a schema can have.
const SCHEMA: &str = r#"
    syntax = "proto3";
    enum Gear { PARK = 0; DRIVE = 1; }
    message Wheel { double bar = 1; repeated Wheel spare = 2; }
    message Truck {
        optional double speed = 1;
        optional float angle = 2;
        optional int64 odometer = 3;
        optional uint64 fuel = 4;
        sint32 height = 5;
        fixed64 serial = 6;
        bool locked = 7;
        string driver = 8;
        bytes raw = 9;
        Gear gear = 10;
        repeated Wheel wheels = 11;
        repeated int32 codes = 12;
        map<string, Wheel> named = 13;
        map<int64, Gear> gears = 14;
        oneof load { string text = 15; Wheel wheel = 16; }
    }
"#;

static FIXED: LazyLock<PayloadSchemas> = LazyLock::new(|| schemas(SCHEMA).expect("BUG: the schema is right"));

fuzz_target!(|input: &[u8]| {
    let Some((&head, rest)) = input.split_first() else { return };
    if head < 128 {
        read_messages_of_thingsboard(rest);
        return read(&FIXED, rest);
    }
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (text, payload) = (String::from_utf8_lossy(&rest[..end]), rest.get(end + 1..).unwrap_or_default());
    if has_wrong_octal(&text) {
        return;
    }
    match schemas(&text) {
        Ok(own) => read(&own, payload),
        Err(refused) => assert!(!refused.is_empty()),
    }
});

/// Whether a text has something like `0199`. The lexer of protox-parse then asserts, in builds with assertions only, that the number is too
/// large; without assertions it refuses the schema, for which `payload-schema` has a test.
fn has_wrong_octal(text: &str) -> bool {
    let mut runs = text.split(|symbol: char| !symbol.is_ascii_digit());
    runs.any(|digits| digits.starts_with('0') && digits.contains(['8', '9']))
}

fn schemas(text: &str) -> Result<PayloadSchemas, String> {
    let payload = json!({
        "transportPayloadType": "PROTOBUF",
        "deviceTelemetryProtoSchema": text,
        "deviceAttributesProtoSchema": text,
        "deviceRpcResponseProtoSchema": text,
    });
    let transport = json!({ "type": "MQTT", "transportPayloadTypeConfiguration": payload });
    PayloadSchemas::of_profile_data(Some(&json!({ "transportConfiguration": transport }).to_string()))
}

/// A payload is refused with a reason, or is JSON that is the same each time.
fn read(schemas: &PayloadSchemas, payload: &[u8]) {
    for kind in [PayloadKind::Telemetry, PayloadKind::Attributes, PayloadKind::Answer] {
        match schemas.json(kind, PayloadForm::Protobuf, payload) {
            Ok(text) => {
                let value: Result<Json, _> = serde_json::from_slice(&text);
                assert!(value.is_ok(), "{}", String::from_utf8_lossy(&text));
                // The order of a map's entries can differ.
                let again = schemas.json(kind, PayloadForm::Protobuf, payload).expect("it was read before");
                assert_eq!(serde_json::from_slice::<Json>(&again).ok(), value.ok());
            }
            Err(refused) => assert!(!refused.is_empty()),
        }
    }
    let params = String::from_utf8_lossy(payload);
    if let Err(refused) = schemas.call(1, "m", &params) {
        assert!(!refused.is_empty());
    }
}

fn read_messages_of_thingsboard(payload: &[u8]) {
    let refused = [
        read_request(payload).err().map(|fault| fault.to_string()),
        read_call(payload).err().map(|fault| fault.to_string()),
        read_claim(payload).err().map(|fault| fault.to_string()),
        read_provision_or_json(payload).err().map(|fault| fault.to_string()),
    ];
    assert!(refused.into_iter().flatten().all(|text| !text.is_empty()));
}
