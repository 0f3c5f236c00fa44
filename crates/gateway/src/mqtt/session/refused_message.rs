//! A message that the server refuses and keeps as a dead letter.

use std::fmt::Display;

use wire::mqtt::ReasonCode;

use super::super::acks::Refusal;

/// A message that cannot be taken as what its topic promises, or a part of one.
pub(super) struct RefusedMessage {
    pub(super) refusal: Refusal,
    /// For metrics.
    pub(super) label: &'static str,
    /// The refused part of its payload; all of it when it is `None`.
    pub(super) payload: Option<Vec<u8>>,
}

impl RefusedMessage {
    /// All of a message.
    pub(super) fn new(reason: ReasonCode, label: &'static str, why: &dyn Display) -> Self {
        Self { refusal: Refusal { reason, text: why.to_string() }, label, payload: None }
    }

    /// Its payload is not what the topic wants.
    pub(super) fn payload(why: &dyn Display) -> Self {
        Self::new(ReasonCode::PAYLOAD_FORMAT_INVALID, "payload", why)
    }

    /// The server takes nothing under its topic.
    pub(super) fn topic(why: &dyn Display) -> Self {
        Self::new(ReasonCode::TOPIC_NAME_INVALID, "topic", why)
    }

    /// The server cannot do what its topic promises; `label` is for metrics.
    pub(super) fn labelled(label: &'static str, why: &dyn Display) -> Self {
        Self::new(ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR, label, why)
    }

    /// A limit does not allow it.
    pub(super) fn limit(label: &'static str, why: &dyn Display) -> Self {
        Self::new(ReasonCode::QUOTA_EXCEEDED, label, why)
    }
}
