//! RPC: MQTT topics, and MQTT payloads and HTTP (ThingsBoard, `MqttTopics`, `JsonConverter`).
//!
//! Both sides call each other with the same names. On `.../rpc/request/<id>` the caller sends `{"method":"m","params":...}`, and on
//! `.../rpc/response/<id>` the other side answers with any payload. A gateway has one topic for the calls of its devices
//! ([`Topic::Rpc`](super::gateway::Topic::Rpc)).

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::names::Names;

/// A kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RpcKind {
    /// A call.
    Request,
    /// The answer to a call.
    Response,
}

/// A topic of RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Topic {
    /// Its names.
    pub names: Names,
    /// The kind of the message.
    pub kind: RpcKind,
    /// The number of the call.
    pub id: i32,
}

impl Topic {
    /// Reads a topic. `None` if it is not one of RPC, or has no number that fits into 31 bits.
    pub fn parse(topic: &str) -> Option<Self> {
        let (names, kind, id) = split(topic)?;
        let id = id.parse().ok().filter(|id| *id >= 0)?;
        Some(Self { names, kind, id })
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", prefix(self.names, self.kind), self.id)
    }
}

/// Reads a topic filter that selects all topics of a kind, such as `v1/devices/me/rpc/request/+`.
pub fn filter(filter: &str) -> Option<(Names, RpcKind)> {
    let (names, kind, id) = split(filter)?;
    (id == "+").then_some((names, kind))
}

fn split(topic: &str) -> Option<(Names, RpcKind, &str)> {
    Names::ALL.into_iter().find_map(|names| {
        [RpcKind::Request, RpcKind::Response]
            .into_iter()
            .find_map(|kind| topic.strip_prefix(prefix(names, kind)).map(|id| (names, kind, id)))
    })
}

fn prefix(names: Names, kind: RpcKind) -> &'static str {
    match (names, kind) {
        (Names::Long, RpcKind::Request) => "v1/devices/me/rpc/request/",
        (Names::Long, RpcKind::Response) => "v1/devices/me/rpc/response/",
        (Names::Short, RpcKind::Request) => "v2/r/req/",
        (Names::Short, RpcKind::Response) => "v2/r/res/",
        (Names::ShortJson, RpcKind::Request) => "v2/r/req/j/",
        (Names::ShortJson, RpcKind::Response) => "v2/r/res/j/",
        (Names::ShortProtobuf, RpcKind::Request) => "v2/r/req/p/",
        (Names::ShortProtobuf, RpcKind::Response) => "v2/r/res/p/",
    }
}

/// A payload that is not what the topic wants. The text is for the device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the payload is not {wanted}: {reason}")]
pub struct RpcPayloadError {
    wanted: &'static str,
    reason: String,
}

/// A call by a device.
#[derive(Debug, Deserialize)]
pub struct DeviceCall<'a> {
    /// The procedure.
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    /// Its parameters.
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
}

impl<'a> DeviceCall<'a> {
    /// Reads the payload of a call.
    pub fn parse(payload: &'a [u8]) -> Result<Self, RpcPayloadError> {
        parse(payload, r#"a call such as {"method":"m","params":{}}"#)
    }
}

/// The answer of a device behind a gateway.
#[derive(Debug, Deserialize)]
pub struct GatewayAnswer<'a> {
    /// The name of the device.
    #[serde(borrow)]
    pub device: Cow<'a, str>,
    /// The number of the call.
    pub id: i32,
    /// The answer as JSON text.
    #[serde(borrow)]
    pub data: &'a RawValue,
}

impl<'a> GatewayAnswer<'a> {
    /// Reads the payload of an answer.
    pub fn parse(payload: &'a [u8]) -> Result<Self, RpcPayloadError> {
        parse(payload, r#"an answer such as {"device":"A","id":1,"data":{}}"#)
    }
}

fn parse<'a, T: Deserialize<'a>>(payload: &'a [u8], wanted: &'static str) -> Result<T, RpcPayloadError> {
    serde_json::from_slice(payload).map_err(|error| RpcPayloadError { wanted, reason: error.to_string() })
}

/// The payload of a call to a device over MQTT, where the topic has the number. `params` is JSON text.
pub fn call(method: &str, params: &str) -> String {
    format!(r#"{{"method":{},"params":{params}}}"#, text(method))
}

/// The payload of a call to a device over HTTP. `params` is JSON text.
pub fn call_with_id(id: i32, method: &str, params: &str) -> String {
    format!(r#"{{"id":{id},"method":{},"params":{params}}}"#, text(method))
}

/// The payload of a call to a device behind a gateway. `params` is JSON text.
pub fn gateway_call(device: &str, id: i32, method: &str, params: &str) -> String {
    format!(r#"{{"device":{},"data":{}}}"#, text(device), call_with_id(id, method, params))
}

/// The payload of the server's answer to a call by a device behind a gateway. `answer` is JSON text.
pub fn gateway_answer(device: &str, id: i32, answer: &str) -> String {
    format!(r#"{{"device":{},"id":{id},"data":{answer}}}"#, text(device))
}

fn text(text: &str) -> String {
    serde_json::to_string(text).expect("BUG: text is always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_have_four_sets_of_names() {
        for (text, names, kind, id) in [
            ("v1/devices/me/rpc/request/0", Names::Long, RpcKind::Request, 0),
            ("v1/devices/me/rpc/response/17", Names::Long, RpcKind::Response, 17),
            ("v2/r/req/2147483647", Names::Short, RpcKind::Request, i32::MAX),
            ("v2/r/res/3", Names::Short, RpcKind::Response, 3),
            ("v2/r/req/j/4", Names::ShortJson, RpcKind::Request, 4),
            ("v2/r/res/j/5", Names::ShortJson, RpcKind::Response, 5),
            ("v2/r/req/p/6", Names::ShortProtobuf, RpcKind::Request, 6),
            ("v2/r/res/p/7", Names::ShortProtobuf, RpcKind::Response, 7),
        ] {
            let topic = Topic { names, kind, id };
            assert_eq!((Topic::parse(text), topic.to_string().as_str()), (Some(topic), text));
        }
        for other in [
            "v1/devices/me/rpc/request/",
            "v1/devices/me/rpc/request/x",
            "v1/devices/me/rpc/request/-1",
            "v1/devices/me/rpc/request/2147483648",
            "v1/devices/me/rpc/request/1/2",
            "v1/devices/me/rpc",
            "v2/r/1",
            "v1/gateway/rpc",
        ] {
            assert_eq!(Topic::parse(other), None, "{other}");
        }
    }

    #[test]
    fn filters_select_all_numbers() {
        assert_eq!(filter("v1/devices/me/rpc/request/+"), Some((Names::Long, RpcKind::Request)));
        assert_eq!(filter("v2/r/res/+"), Some((Names::Short, RpcKind::Response)));
        assert_eq!(filter("v2/r/req/p/+"), Some((Names::ShortProtobuf, RpcKind::Request)));
        assert_eq!(filter("v1/devices/me/rpc/request/1"), None);
        assert_eq!(filter("v1/devices/me/rpc/+"), None);
    }

    #[test]
    fn payloads_are_those_of_thingsboard() {
        assert_eq!(call("setGpio", r#"{"pin":7}"#), r#"{"method":"setGpio","params":{"pin":7}}"#);
        assert_eq!(call_with_id(5, "a\"b", "true"), r#"{"id":5,"method":"a\"b","params":true}"#);
        assert_eq!(
            gateway_call("Device A", 1, "toggle", "{}"),
            r#"{"device":"Device A","data":{"id":1,"method":"toggle","params":{}}}"#
        );
        assert_eq!(
            gateway_answer("Device A", 1, r#"{"ok":1}"#),
            r#"{"device":"Device A","id":1,"data":{"ok":1}}"#
        );
    }

    #[test]
    fn payloads_of_devices_are_read() {
        let call = DeviceCall::parse(br#"{"method":"get\u0054ime","params":[1, 2],"more":0}"#).unwrap();
        assert_eq!((&*call.method, call.params.unwrap().get()), ("getTime", "[1, 2]"));
        assert!(DeviceCall::parse(br#"{"method":"m"}"#).unwrap().params.is_none());
        let answer = GatewayAnswer::parse(br#"{"device":"A","id":3,"data":{"on": true}}"#).unwrap();
        assert_eq!((&*answer.device, answer.id, answer.data.get()), ("A", 3, r#"{"on": true}"#));
        let wrong = GatewayAnswer::parse(br#"{"device":"A","data":1}"#).unwrap_err().to_string();
        assert!(wrong.starts_with("the payload is not an answer such as"), "{wrong}");
        assert!(DeviceCall::parse(b"{").is_err() && DeviceCall::parse(br#"{"params":1}"#).is_err());
    }
}
