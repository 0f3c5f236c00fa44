//! Payloads of Protobuf: a device profile says that its devices send them, and has their schemas, as in ThingsBoard
//! (`transportConfiguration` of `profileData`).

pub mod limits;
mod schema;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value as Json;

use schema::MessageSchema;

/// The member of `profileData` that is read here.
const MEMBER: &str = "transportConfiguration";

/// What a payload of a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadKind {
    /// Telemetry.
    Telemetry,
    /// Client attributes.
    Attributes,
}

/// The form of a payload, as its topic says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadForm {
    /// That of the profile of the device.
    OfProfile,
    /// JSON.
    Json,
    /// Protobuf.
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
    /// Whether payloads that cannot be decoded are read as JSON.
    json_too: bool,
}

/// ThingsBoard's `MqttDeviceProfileTransportConfiguration`, as far as it has a meaning here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Transport {
    #[serde(rename = "type")]
    kind: Option<String>,
    device_telemetry_topic: Option<String>,
    device_attributes_topic: Option<String>,
    device_attributes_subscribe_topic: Option<String>,
    sparkplug: Option<bool>,
    transport_payload_type_configuration: Option<PayloadType>,
}

/// ThingsBoard's `TransportPayloadTypeConfiguration`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PayloadType {
    transport_payload_type: Option<String>,
    device_telemetry_proto_schema: Option<String>,
    device_attributes_proto_schema: Option<String>,
    device_rpc_request_proto_schema: Option<String>,
    device_rpc_response_proto_schema: Option<String>,
    enable_compatibility_with_json_format: Option<bool>,
    use_json_payload_format_for_default_downlink_topics: Option<bool>,
}

impl PayloadSchemas {
    /// Reads the schemas of `profileData`, JSON text. Without the member, payloads are JSON.
    ///
    /// # Errors
    /// The place in the JSON and the fault.
    pub fn of_profile_data(profile_data: Option<&str>) -> Result<Self, String> {
        // Most profiles have no schemas, and data may be long.
        let Some(text) = profile_data.filter(|text| text.contains(MEMBER)) else {
            return Ok(Self::default());
        };
        let json: Json = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
        match json.get(MEMBER) {
            None | Some(Json::Null) => Ok(Self::default()),
            Some(transport) => Transport::deserialize(transport)
                .map_err(|error| error.to_string())
                .and_then(Transport::schemas)
                .map_err(|fault| format!("{MEMBER}: {fault}")),
        }
    }

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
        let schemas = match (form, &self.protobuf) {
            (PayloadForm::Json, _) | (PayloadForm::OfProfile, None) => return Ok(Cow::Borrowed(payload)),
            (PayloadForm::OfProfile | PayloadForm::Protobuf, Some(schemas)) => schemas,
            (PayloadForm::Protobuf, None) => return Err(no_schema(kind)),
        };
        let schema = match kind {
            PayloadKind::Telemetry => &schemas.telemetry,
            PayloadKind::Attributes => &schemas.attributes,
        };
        let decoded = schema.as_ref().ok_or_else(|| no_schema(kind)).and_then(|schema| schema.json(payload));
        match decoded {
            Ok(json) => Ok(Cow::Owned(json)),
            Err(_) if schemas.json_too && form == PayloadForm::OfProfile => Ok(Cow::Borrowed(payload)),
            Err(refused) => Err(refused),
        }
    }
}

impl Transport {
    fn schemas(self) -> Result<PayloadSchemas, String> {
        match self.kind.as_deref() {
            None | Some("DEFAULT") => return Ok(PayloadSchemas::default()),
            Some("MQTT") => {}
            Some(other) => return Err(format!("type is {other:?}; it must be DEFAULT or MQTT")),
        }
        for (member, topic, default) in [
            ("deviceTelemetryTopic", &self.device_telemetry_topic, "v1/devices/me/telemetry"),
            ("deviceAttributesTopic", &self.device_attributes_topic, "v1/devices/me/attributes"),
            (
                "deviceAttributesSubscribeTopic",
                &self.device_attributes_subscribe_topic,
                "v1/devices/me/attributes",
            ),
        ] {
            if let Some(other) = topic.as_deref().filter(|topic| *topic != default) {
                return Err(format!("{member} is {other:?}; this server has {default:?} only"));
            }
        }
        if self.sparkplug == Some(true) {
            return Err("sparkplug is true; this server does not have it".to_owned());
        }
        let json = PayloadSchemas { is_mqtt: true, protobuf: None };
        let Some(payload) = self.transport_payload_type_configuration else { return Ok(json) };
        match payload.transport_payload_type.as_deref() {
            None | Some("JSON") => Ok(json),
            Some("PROTOBUF") => {
                Ok(PayloadSchemas { is_mqtt: true, protobuf: Some(Box::new(payload.protobuf()?)) })
            }
            Some(other) => Err(format!("transportPayloadType is {other:?}; it must be JSON or PROTOBUF")),
        }
    }
}

impl PayloadType {
    fn protobuf(self) -> Result<Schemas, String> {
        if self.use_json_payload_format_for_default_downlink_topics != Some(true) {
            return Err("useJsonPayloadFormatForDefaultDownlinkTopics is not true; set it, because this server sends JSON to devices".to_owned());
        }
        let compile = |member: &str, text: Option<&str>| {
            let text = text.filter(|text| !text.trim().is_empty());
            let compiled = text.map(MessageSchema::compile).transpose();
            compiled.map_err(|fault| format!("{member} {fault}"))
        };
        let telemetry = compile("deviceTelemetryProtoSchema", self.device_telemetry_proto_schema.as_deref())?;
        let attributes =
            compile("deviceAttributesProtoSchema", self.device_attributes_proto_schema.as_deref())?;
        // Calls and their answers are JSON here; a wrong schema is refused all the same.
        compile("deviceRpcRequestProtoSchema", self.device_rpc_request_proto_schema.as_deref())?;
        compile("deviceRpcResponseProtoSchema", self.device_rpc_response_proto_schema.as_deref())?;
        let json_too = self.enable_compatibility_with_json_format.unwrap_or(false);
        Ok(Schemas { telemetry, attributes, json_too })
    }
}

fn no_schema(kind: PayloadKind) -> String {
    let what = match kind {
        PayloadKind::Telemetry => "telemetry",
        PayloadKind::Attributes => "attributes",
    };
    format!("the profile of the device has no Protobuf schema of {what}; send JSON, or add it to the profile")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schemas(payload: &Json) -> Result<PayloadSchemas, String> {
        let transport = json!({ "type": "MQTT", "transportPayloadTypeConfiguration": payload });
        PayloadSchemas::of_profile_data(Some(&json!({ "transportConfiguration": transport }).to_string()))
    }

    fn protobuf(more: &[(&str, Json)]) -> Json {
        let schema = r#"syntax = "proto3"; message T { optional double speed = 1; }"#;
        let mut all = json!({
            "transportPayloadType": "PROTOBUF",
            "deviceTelemetryProtoSchema": schema,
            "useJsonPayloadFormatForDefaultDownlinkTopics": true,
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
        let both = schemas(&protobuf(&[("enableCompatibilityWithJsonFormat", true.into())])).unwrap();
        assert_eq!(telemetry(&both, OfProfile, b"{}").unwrap(), b"{}");
        assert_eq!(telemetry(&both, OfProfile, SPEED).unwrap(), br#"{"speed":1.0}"#);
        assert!(telemetry(&both, Protobuf, b"{}").is_err());
    }

    #[test]
    fn what_this_server_does_not_have_is_refused_with_its_place() {
        for (payload, part) in [
            (json!({ "transportPayloadType": "XML" }), "JSON or PROTOBUF"),
            (protobuf(&[("useJsonPayloadFormatForDefaultDownlinkTopics", false.into())]), "sends JSON"),
            (
                protobuf(&[("deviceAttributesProtoSchema", "message".into())]),
                "deviceAttributesProtoSchema cannot be read",
            ),
            (protobuf(&[("deviceRpcRequestProtoSchema", "x".into())]), "deviceRpcRequestProtoSchema"),
        ] {
            let refused = schemas(&payload).unwrap_err();
            assert!(refused.starts_with("transportConfiguration: ") && refused.contains(part), "{refused}");
        }
        for (transport, part) in [
            (json!({ "type": "COAP" }), "DEFAULT or MQTT"),
            (json!({ "type": "MQTT", "deviceTelemetryTopic": "x" }), "deviceTelemetryTopic"),
            (json!({ "type": "MQTT", "sparkplug": true }), "sparkplug"),
        ] {
            let data = json!({ "transportConfiguration": transport }).to_string();
            let refused = PayloadSchemas::of_profile_data(Some(&data)).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
        let plain = json!({ "transportConfiguration": { "type": "MQTT", "deviceTelemetryTopic": "v1/devices/me/telemetry" } });
        for (data, transport) in [
            (None, "DEFAULT"),
            (Some(r#"{"alarms":null}"#), "DEFAULT"),
            (Some(plain.to_string().as_str()), "MQTT"),
        ] {
            let schemas = PayloadSchemas::of_profile_data(data).unwrap();
            assert_eq!((schemas.transport_type(), schemas.protobuf.is_none()), (transport, true));
        }
    }
}
