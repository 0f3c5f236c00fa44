//! Topics and payloads of gateways, besides attributes and calls (ThingsBoard, `MqttTopics`, `AbstractGatewaySessionHandler`).
//!
//! A gateway speaks for the devices behind it. It states which devices it has connected, and sends telemetry and attributes of
//! several devices in one object, whose members have the names of the devices. Payloads may be relaxed JSON, as telemetry may.

use super::object::{Member, find, read_object, text};
use crate::telemetry::PayloadError;

/// Nesting of a message about one device.
const DEVICE_DEPTH_MAX: usize = 2;

/// Nesting of a payload of several devices around a value: the object of devices, an array of rows, a row, its `values`.
const PARTS_DEPTH: usize = 4;

/// What a topic of gateways is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The gateway speaks for a device from now on.
    Connect,
    /// The gateway no longer speaks for a device.
    Disconnect,
    /// Telemetry of several devices.
    Telemetry,
    /// Attributes: of several devices from the gateway, changes for one device to it.
    Attributes,
    /// The gateway asks for attributes of a device.
    AttributesRequest,
    /// The gateway gets attributes of a device.
    AttributesResponse,
    /// Calls to the gateway, and their answers from it.
    Rpc,
    /// The gateway lets somebody claim devices.
    Claim,
}

impl Topic {
    const ALL: [Self; 8] = [
        Self::Connect,
        Self::Disconnect,
        Self::Telemetry,
        Self::Attributes,
        Self::AttributesRequest,
        Self::AttributesResponse,
        Self::Rpc,
        Self::Claim,
    ];

    /// Reads a topic; `None` if it is not one of gateways.
    pub fn parse(topic: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == topic)
    }

    /// The topic. Gateways have no short names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "v1/gateway/connect",
            Self::Disconnect => "v1/gateway/disconnect",
            Self::Telemetry => "v1/gateway/telemetry",
            Self::Attributes => "v1/gateway/attributes",
            Self::AttributesRequest => "v1/gateway/attributes/request",
            Self::AttributesResponse => "v1/gateway/attributes/response",
            Self::Rpc => "v1/gateway/rpc",
            Self::Claim => "v1/gateway/claim",
        }
    }
}

/// A device that a gateway connects or disconnects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayDevice {
    /// Its name.
    pub device: String,
    /// The name of its profile, if the message has one.
    pub profile: Option<String>,
}

/// Reads `{"device":"A","type":"profile"}`; `type` may be missing, `null` or empty.
pub fn read_device(payload: &[u8]) -> Result<GatewayDevice, PayloadError> {
    read_object(payload, DEVICE_DEPTH_MAX, "the payload", |members| {
        let missing =
            || PayloadError::Shape(r#"the message has no member device; send {"device":"A"}"#.into());
        let profile = find(members, "type").filter(|raw| raw.get() != "null");
        let profile = profile.map(|raw| text(raw, "type")).transpose()?;
        Ok(GatewayDevice {
            device: text(find(members, "device").ok_or_else(missing)?, "device")?,
            profile: profile.filter(|name| !name.is_empty()),
        })
    })
}

/// What a payload has for one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The name of the device.
    pub device: String,
    /// The value under this name, as JSON text: a payload that the device itself could send.
    pub json: String,
}

/// Reads `{"A":..,"B":..}`: a part for each member, in their order. The reader of a part checks its form.
pub fn read_parts(payload: &[u8], json_depth_max: usize) -> Result<Vec<Part>, PayloadError> {
    read_object(payload, json_depth_max.saturating_add(PARTS_DEPTH), "the payload", |devices| {
        let part = |(device, raw): &Member<'_>| Part {
            device: device.clone().into_owned(),
            json: raw.get().to_owned(),
        };
        Ok(devices.iter().map(part).collect())
    })
}

/// Parts as the payload that has them.
pub fn payload_of<'a>(parts: impl IntoIterator<Item = &'a Part>) -> String {
    let member = |part: &Part| {
        let name = serde_json::to_string(&part.device).expect("BUG: text is always JSON");
        format!("{name}:{}", part.json)
    };
    let members: Vec<String> = parts.into_iter().map(member).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPTH: usize = 8;

    #[test]
    fn topics_have_one_name() {
        for topic in Topic::ALL {
            assert_eq!(Topic::parse(topic.name()), Some(topic));
        }
        assert_eq!(Topic::parse("v1/gateway/connect/"), None);
        assert_eq!(Topic::parse("v2/g/c"), None);
    }

    #[test]
    fn a_gateway_connects_a_device_with_or_without_a_profile() {
        let read = |payload: &str| read_device(payload.as_bytes());
        let device = |profile: Option<&str>| GatewayDevice {
            device: "Device A".into(),
            profile: profile.map(str::to_owned),
        };
        assert_eq!(read(r#"{"device":"Device A","type":"pump"}"#).unwrap(), device(Some("pump")));
        for without in [
            r#"{"device":"Device A"}"#,
            r#"{"device":"Device A","type":null}"#,
            "{device:'Device A',type:''}",
        ] {
            assert_eq!(read(without).unwrap(), device(None), "{without}");
        }
        for (payload, part) in [
            ("{}", "no member device"),
            (r#"{"device":7}"#, "device must be a text, found a number"),
            (r#"{"device":"A","type":[]}"#, "type must be a text, found an array"),
            (r#"["A"]"#, "the payload must be an object, found an array"),
        ] {
            let error = read(payload).unwrap_err().to_string();
            assert!(error.contains(part), "{payload}: {error}");
        }
    }

    #[test]
    fn a_payload_has_a_part_for_each_device() {
        let payload = r#"{"A": [{"ts": 1, "values": {"t": 2}}], "B\"": {"t": 3}, "A": 7}"#;
        let parts = read_parts(payload.as_bytes(), DEPTH).unwrap();
        let found: Vec<_> = parts.iter().map(|part| (part.device.as_str(), part.json.as_str())).collect();
        assert_eq!(found, [("A", r#"[{"ts": 1, "values": {"t": 2}}]"#), ("B\"", r#"{"t": 3}"#), ("A", "7")]);
        assert_eq!(read_parts(payload_of(&parts).as_bytes(), DEPTH).unwrap(), parts);
        assert_eq!(read_parts(b"{}", DEPTH).unwrap(), []);
        let relaxed = read_parts(b"{A:[{t:1}]}", DEPTH).unwrap();
        assert_eq!(relaxed, [Part { device: "A".into(), json: r#"[{"t":1}]"#.into() }]);
        let error = read_parts(br#"[{"A":1}]"#, DEPTH).unwrap_err().to_string();
        assert_eq!(error, "the payload must be an object, found an array");
    }

    #[test]
    fn a_value_may_nest_as_deep_as_one_of_a_device() {
        let nested = |depth: usize| {
            format!("{{A:[{{ts:1,values:{{t:{}1{}}}}}]}}", "[".repeat(depth), "]".repeat(depth))
        };
        assert!(read_parts(nested(DEPTH).as_bytes(), DEPTH).is_ok());
        assert!(read_parts(nested(DEPTH + 1).as_bytes(), DEPTH).is_err());
    }
}
