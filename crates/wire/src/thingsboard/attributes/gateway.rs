//! Requests of gateways for attributes.

use serde_json::value::RawValue;

use super::super::object::{find, kind, read_object, text};
use super::request::texts;
use crate::telemetry::PayloadError;

/// Nesting of a request.
const REQUEST_DEPTH_MAX: usize = 2;

/// A request of a gateway for attributes of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayRequest {
    /// The number that the answer repeats.
    pub id: i32,
    /// Name of the device.
    pub device: String,
    /// Whether client attributes are wanted; else shared ones.
    pub client: bool,
    /// The wanted keys.
    pub keys: Vec<String>,
}

/// Reads `{"id":1,"device":"A","client":true,"key":"a"}` or the same with `"keys":["a","b"]`.
pub fn read_gateway_request(payload: &[u8]) -> Result<GatewayRequest, PayloadError> {
    read_object(payload, REQUEST_DEPTH_MAX, "the payload", |members| {
        let need = |name: &str| {
            let missing = || PayloadError::Shape(format!("the request has no member {name}; add it"));
            find(members, name).ok_or_else(missing)
        };
        let keys = match find(members, "key") {
            Some(key) => vec![text(key, "key")?],
            None => texts(need("keys")?, "keys")?,
        };
        Ok(GatewayRequest {
            id: id(need("id")?)?,
            device: text(need("device")?, "device")?,
            client: boolean(need("client")?)?,
            keys,
        })
    })
}

fn id(raw: &RawValue) -> Result<i32, PayloadError> {
    raw.get().parse().map_err(|_| {
        let text = raw.get();
        PayloadError::Shape(format!("id must be a whole number of 32 bits, found {text:.40}"))
    })
}

fn boolean(raw: &RawValue) -> Result<bool, PayloadError> {
    match raw.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(PayloadError::Shape(format!("client must be true or false, found {}", kind(raw)))),
    }
}
