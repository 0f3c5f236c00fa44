//! Attributes: MQTT topics, and MQTT payloads and HTTP (ThingsBoard, `MqttTopics`, `JsonConverter`, `JsonMqttAdaptor`,
//! `AbstractGatewaySessionHandler`).
//!
//! A device publishes client attributes as `{"key":value}` and asks for attributes with lists of keys. The server answers with
//! `{"client":{..},"shared":{..}}` and pushes changes of shared attributes as `{"key":value}` or `{"deleted":["key"]}`. A gateway
//! sends and gets the same with the names of its devices. Payloads may be relaxed JSON, as telemetry may.

mod gateway;
mod publish;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod topic;

pub use gateway::{GatewayRequest, read_gateway_request};
pub use publish::{Attributes, read_publish};
pub use request::{Request, read_request};
pub use response::{
    JsonValue, gateway_response, push_of_changed, push_of_changed_to_gateway, push_of_deleted,
    push_of_deleted_to_gateway, response,
};
pub use topic::Topic;
