//! The commands: their requests, what a device gets, and what a user gets.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The key of the attribute that is set, and the name of the procedure that is called.
const NAME: &str = "bench";

/// A kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Command {
    /// A two-way call: the device answers with the parameters.
    Rpc,
    /// A shared attribute, which the server sends to the device.
    Attributes,
}

/// The content of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    /// The run that sent it.
    pub(super) run: u32,
    /// The number of the device.
    pub(super) device: u32,
    /// The number of the command among those of the device.
    pub(super) number: u64,
    /// When it was due, nanoseconds after the start of the segment.
    pub(super) intended_ns: u64,
    /// When it was sent.
    pub(super) sent_ns: u64,
}

impl Command {
    /// The path of a request for a device.
    pub(super) fn path(self, device_id: &str) -> String {
        match self {
            Self::Rpc => format!("/api/rpc/twoway/{device_id}"),
            Self::Attributes => format!("/api/plugins/telemetry/DEVICE/{device_id}/attributes/SHARED_SCOPE"),
        }
    }

    /// The body of a request.
    pub(super) fn body(self, content: &Content) -> String {
        match self {
            Self::Rpc => json!({ "method": NAME, "params": content }).to_string(),
            Self::Attributes => json!({ NAME: content }).to_string(),
        }
    }

    /// The topic filter of a device.
    pub(super) fn filter(self) -> &'static str {
        match self {
            Self::Rpc => "v1/devices/me/rpc/request/+",
            Self::Attributes => "v1/devices/me/attributes",
        }
    }

    /// The content of a message to a device.
    pub(super) fn content(self, payload: &[u8]) -> Option<Content> {
        let mut message: Value = serde_json::from_slice(payload).ok()?;
        let content = match self {
            Self::Rpc if message["method"] == NAME => message["params"].take(),
            Self::Rpc => return None,
            Self::Attributes => message.get_mut(NAME)?.take(),
        };
        serde_json::from_value(content).ok()
    }

    /// Whether the body of an answer is that of a request with this content.
    pub(super) fn is_answer(self, body: &[u8], content: &Content) -> bool {
        match self {
            Self::Rpc => serde_json::from_slice(body).is_ok_and(|answer: Content| answer == *content),
            Self::Attributes => true,
        }
    }
}

/// The topic of the answer to a call, and its payload.
pub(super) fn response(topic: &str, content: &Content) -> Option<(String, String)> {
    let id = topic.strip_prefix("v1/devices/me/rpc/request/")?;
    let payload = serde_json::to_string(content).ok()?;
    Some((format!("v1/devices/me/rpc/response/{id}"), payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: Content = Content { run: 1, device: 2, number: 3, intended_ns: 4, sent_ns: u64::MAX };

    #[test]
    fn a_device_answers_a_call_with_what_it_was_asked() {
        let call = Command::Rpc.body(&CONTENT);
        let content = Command::Rpc.content(call.as_bytes()).unwrap();
        let (topic, answer) = response("v1/devices/me/rpc/request/17", &content).unwrap();
        assert_eq!(topic, "v1/devices/me/rpc/response/17");
        assert!(Command::Rpc.is_answer(answer.as_bytes(), &CONTENT));
        assert!(!Command::Rpc.is_answer(answer.as_bytes(), &Content { number: 4, ..CONTENT }));
        assert!(!Command::Rpc.is_answer(b"", &CONTENT));
        assert_eq!(Command::Rpc.content(br#"{"method":"other","params":{}}"#), None);
        assert_eq!(response("v1/devices/me/attributes", &CONTENT), None);
    }

    #[test]
    fn a_device_gets_the_attribute_that_a_user_sets() {
        let body = Command::Attributes.body(&CONTENT);
        assert_eq!(Command::Attributes.content(body.as_bytes()), Some(CONTENT));
        assert_eq!(Command::Attributes.content(br#"{"deleted":["bench"]}"#), None);
    }
}
