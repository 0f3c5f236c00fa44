//! Payloads of Protobuf: a device profile states that its devices send them, and has their schemas, as in ThingsBoard
//! (`transportConfiguration` of `profileData`).

mod calls;
pub mod limits;
mod schema;
mod transport;

use std::borrow::Cow;

use calls::{CallSchema, default_answers, default_calls};
use schema::MessageSchema;

/// What a payload of a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadKind {
    Telemetry,
    /// Client attributes.
    Attributes,
    /// The answer to a call of the device.
    Answer,
}

/// The form of a payload, as its topic says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadForm {
    /// That of the profile of the device.
    OfProfile,
    Json,
    Protobuf,
}

/// The form of the payloads of a profile's devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayloadSchemas {
    /// Whether the profile is ThingsBoard's for MQTT.
    is_mqtt: bool,
    /// The schemas; `None` if payloads are JSON.
    protobuf: Option<Box<Schemas>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Schemas {
    telemetry: Option<MessageSchema>,
    attributes: Option<MessageSchema>,
    calls: CallSchema,
    answers: MessageSchema,
    /// Whether payloads that cannot be decoded are read as JSON.
    json_too: bool,
    /// Whether the server sends JSON under the topics with long names.
    json_to_devices: bool,
}

impl PayloadSchemas {
    /// ThingsBoard's type of the transport of the profile.
    pub fn transport_type(&self) -> &'static str {
        if self.is_mqtt { "MQTT" } else { "DEFAULT" }
    }

    /// The payload of a device as JSON: as it is, or decoded.
    ///
    /// # Errors
    /// The reason, for the device.
    pub fn json<'a>(
        &self,
        kind: PayloadKind,
        form: PayloadForm,
        payload: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, String> {
        if !self.is_protobuf(form) {
            return Ok(Cow::Borrowed(payload));
        }
        let decoded = self.schema(kind).and_then(|schema| schema.json(payload));
        match decoded {
            Ok(json) => Ok(Cow::Owned(json)),
            Err(_) if self.reads_json_too(form) => Ok(Cow::Borrowed(payload)),
            Err(refused) => Err(refused),
        }
    }

    /// Whether payloads of a form are Protobuf.
    pub fn is_protobuf(&self, form: PayloadForm) -> bool {
        match form {
            PayloadForm::OfProfile => self.protobuf.is_some(),
            PayloadForm::Json => false,
            PayloadForm::Protobuf => true,
        }
    }

    /// Whether payloads of a form that are not Protobuf are read as JSON.
    pub fn reads_json_too(&self, form: PayloadForm) -> bool {
        form == PayloadForm::OfProfile && self.protobuf.as_ref().is_some_and(|schemas| schemas.json_too)
    }

    /// Whether the server sends Protobuf under the topics with long names (`v1/devices/me/...`).
    pub fn sends_protobuf(&self) -> bool {
        self.protobuf.as_ref().is_some_and(|schemas| !schemas.json_to_devices)
    }

    /// A call of the device as Protobuf. `params` is JSON text. A profile without a schema of calls has that of ThingsBoard.
    ///
    /// # Errors
    /// The parameters do not fit the schema. The text is for the caller.
    pub fn call(&self, id: i32, method: &str, params: &str) -> Result<Vec<u8>, String> {
        let schema = self.protobuf.as_ref().map_or(default_calls(), |schemas| &schemas.calls);
        schema.encode(id, method, params)
    }

    fn schema(&self, kind: PayloadKind) -> Result<&MessageSchema, String> {
        let schemas = self.protobuf.as_ref();
        match kind {
            PayloadKind::Telemetry => {
                schemas.and_then(|schemas| schemas.telemetry.as_ref()).ok_or_else(|| no_schema("telemetry"))
            }
            PayloadKind::Attributes => {
                schemas.and_then(|schemas| schemas.attributes.as_ref()).ok_or_else(|| no_schema("attributes"))
            }
            PayloadKind::Answer => Ok(schemas.map_or(default_answers(), |schemas| &schemas.answers)),
        }
    }
}

fn no_schema(what: &str) -> String {
    format!("the profile of the device has no Protobuf schema of {what}; send JSON, or add it to the profile")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    pub(super) fn schemas(payload: &Json) -> Result<PayloadSchemas, String> {
        let transport = json!({ "type": "MQTT", "transportPayloadTypeConfiguration": payload });
        PayloadSchemas::of_profile_data(Some(&json!({ "transportConfiguration": transport }).to_string()))
    }

    pub(super) fn protobuf(more: &[(&str, Json)]) -> Json {
        let schema = r#"syntax = "proto3"; message T { optional double speed = 1; }"#;
        let mut all = json!({
            "transportPayloadType": "PROTOBUF",
            "deviceTelemetryProtoSchema": schema,
        });
        more.iter().for_each(|(name, value)| all[*name] = value.clone());
        all
    }

    const SPEED: &[u8] = &[0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f];

    #[test]
    fn the_topic_or_the_profile_says_what_a_payload_is() {
        use PayloadForm::{Json, OfProfile, Protobuf};
        let json = PayloadSchemas::default();
        let telemetry = |schemas: &PayloadSchemas, form, payload: &[u8]| {
            schemas.json(PayloadKind::Telemetry, form, payload).map(Cow::into_owned)
        };
        assert_eq!(telemetry(&json, OfProfile, b"{}").unwrap(), b"{}");
        assert!(telemetry(&json, Protobuf, SPEED).unwrap_err().contains("no Protobuf schema of telemetry"));
        let strict = schemas(&protobuf(&[])).unwrap();
        for form in [OfProfile, Protobuf] {
            assert_eq!(telemetry(&strict, form, SPEED).unwrap(), br#"{"speed":1.0}"#);
            assert!(telemetry(&strict, form, b"{}").is_err());
        }
        assert_eq!(telemetry(&strict, Json, b"{}").unwrap(), b"{}");
        let attributes = strict.json(PayloadKind::Attributes, OfProfile, SPEED).unwrap_err();
        assert!(attributes.contains("attributes"), "{attributes}");
        let both = schemas(&protobuf(&[("enableCompatibilityWithJsonPayloadFormat", true.into())])).unwrap();
        assert_eq!(telemetry(&both, OfProfile, b"{}").unwrap(), b"{}");
        assert_eq!(telemetry(&both, OfProfile, SPEED).unwrap(), br#"{"speed":1.0}"#);
        assert!(telemetry(&both, Protobuf, b"{}").is_err());
    }

    #[test]
    fn the_profile_says_what_the_server_sends() {
        let strict = schemas(&protobuf(&[])).unwrap();
        let json =
            schemas(&protobuf(&[("useJsonPayloadFormatForDefaultDownlinkTopics", true.into())])).unwrap();
        let sends = [&strict, &json, &PayloadSchemas::default()].map(PayloadSchemas::sends_protobuf);
        assert_eq!(sends, [true, false, false]);
        assert!(json.is_protobuf(PayloadForm::OfProfile));
    }

    #[test]
    fn calls_and_answers_have_schemas_of_thingsboard_without_own_ones() {
        for schemas in [PayloadSchemas::default(), schemas(&protobuf(&[])).unwrap()] {
            assert_eq!(schemas.call(1, "m", "\"p\"").unwrap(), b"\x0a\x01m\x10\x01\x1a\x01p");
            let answer = schemas.json(PayloadKind::Answer, PayloadForm::Protobuf, b"\x0a\x02ok").unwrap();
            assert_eq!(&*answer, br#"{"payload":"ok"}"#);
        }
        let schema = r#"syntax = "proto3"; message A { bool done = 1; }"#;
        let own = schemas(&protobuf(&[("deviceRpcResponseProtoSchema", schema.into())])).unwrap();
        let answer = own.json(PayloadKind::Answer, PayloadForm::OfProfile, b"\x08\x01").unwrap();
        assert_eq!(&*answer, br#"{"done":true}"#);
    }
}
