//! Reads ThingsBoard's `transportConfiguration` of a device profile.

use serde::Deserialize;
use serde_json::Value as Json;

use super::calls::{CallSchema, default_answers, default_calls};
use super::schema::MessageSchema;
use super::{PayloadSchemas, Schemas};

/// The member of `profileData` that is read here.
const MEMBER: &str = "transportConfiguration";

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
    enable_compatibility_with_json_payload_format: Option<bool>,
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
        let json: Json = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
        match json.get(MEMBER) {
            None | Some(Json::Null) => Ok(Self::default()),
            Some(transport) => Transport::deserialize(transport)
                .map_err(|error| error.to_string())
                .and_then(Transport::schemas)
                .map_err(|fault| format!("{MEMBER}: {fault}")),
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
        self.check_topics()?;
        if self.sparkplug == Some(true) {
            return Err("sparkplug is true; this server does not have it".to_owned());
        }
        let json = PayloadSchemas { is_mqtt: true, protobuf: None };
        let Some(payload) = self.transport_payload_type_configuration else { return Ok(json) };
        match payload.transport_payload_type.as_deref() {
            None | Some("JSON") => payload.check_json().map(|()| json),
            Some("PROTOBUF") => {
                Ok(PayloadSchemas { is_mqtt: true, protobuf: Some(Box::new(payload.protobuf()?)) })
            }
            Some(other) => Err(format!("transportPayloadType is {other:?}; it must be JSON or PROTOBUF")),
        }
    }

    fn check_topics(&self) -> Result<(), String> {
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
        Ok(())
    }
}

impl PayloadType {
    /// Checks a configuration of JSON: nothing that is for Protobuf only is set.
    fn check_json(&self) -> Result<(), String> {
        let is_set = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
        for (member, is_set) in [
            ("deviceTelemetryProtoSchema", is_set(&self.device_telemetry_proto_schema)),
            ("deviceAttributesProtoSchema", is_set(&self.device_attributes_proto_schema)),
            ("deviceRpcRequestProtoSchema", is_set(&self.device_rpc_request_proto_schema)),
            ("deviceRpcResponseProtoSchema", is_set(&self.device_rpc_response_proto_schema)),
            (
                "enableCompatibilityWithJsonPayloadFormat",
                self.enable_compatibility_with_json_payload_format == Some(true),
            ),
            (
                "useJsonPayloadFormatForDefaultDownlinkTopics",
                self.use_json_payload_format_for_default_downlink_topics == Some(true),
            ),
        ] {
            if is_set {
                return Err(format!(
                    "{member} has no effect on JSON; leave it out, or set transportPayloadType to PROTOBUF"
                ));
            }
        }
        Ok(())
    }

    fn protobuf(self) -> Result<Schemas, String> {
        let telemetry = compiled(
            "deviceTelemetryProtoSchema",
            self.device_telemetry_proto_schema,
            MessageSchema::compile,
        )?;
        let attributes = compiled(
            "deviceAttributesProtoSchema",
            self.device_attributes_proto_schema,
            MessageSchema::compile,
        )?;
        let calls = compiled(
            "deviceRpcRequestProtoSchema",
            self.device_rpc_request_proto_schema,
            CallSchema::compile,
        )?;
        let answers = compiled(
            "deviceRpcResponseProtoSchema",
            self.device_rpc_response_proto_schema,
            MessageSchema::compile,
        )?;
        Ok(Schemas {
            telemetry,
            attributes,
            calls: calls.unwrap_or_else(|| default_calls().clone()),
            answers: answers.unwrap_or_else(|| default_answers().clone()),
            json_too: self.enable_compatibility_with_json_payload_format.unwrap_or(false),
            json_to_devices: self.use_json_payload_format_for_default_downlink_topics.unwrap_or(false),
        })
    }
}

/// The compiled schema of a member; `None` if its text is absent or blank.
fn compiled<T>(
    member: &str,
    text: Option<String>,
    compile: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    let text = text.filter(|text| !text.trim().is_empty());
    text.map(|text| compile(&text)).transpose().map_err(|fault| format!("{member} {fault}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{protobuf, schemas};
    use super::*;

    #[test]
    fn what_this_server_does_not_have_is_refused_with_its_place() {
        for (payload, part) in [
            (json!({ "transportPayloadType": "XML" }), "JSON or PROTOBUF"),
            (
                json!({ "transportPayloadType": "JSON", "useJsonPayloadFormatForDefaultDownlinkTopics": true }),
                "no effect on JSON",
            ),
            (
                protobuf(&[("transportPayloadType", "JSON".into())]),
                "deviceTelemetryProtoSchema has no effect",
            ),
            (
                protobuf(&[("deviceAttributesProtoSchema", "message".into())]),
                "deviceAttributesProtoSchema cannot be read",
            ),
            (protobuf(&[("deviceRpcRequestProtoSchema", "x".into())]), "deviceRpcRequestProtoSchema"),
            (protobuf(&[("deviceRpcResponseProtoSchema", "x".into())]), "deviceRpcResponseProtoSchema"),
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
    }

    #[test]
    fn a_profile_without_schemas_has_json() {
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
