//! The end of a session, and packets that a session cannot handle.

use std::time::Duration;

use wire::mqtt::ReasonCode;

/// Why a session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionEnd {
    /// The reason code in DISCONNECT to an MQTT 5 peer; `None` if the session sends no DISCONNECT.
    pub(crate) reason: Option<ReasonCode>,
    /// The cause, for the log and the reason string.
    pub(crate) cause: String,
    /// A short, stable name for metrics; `None` if the server refused nothing.
    pub(crate) label: Option<&'static str>,
}

impl SessionEnd {
    /// The server ends the session.
    pub(crate) fn refused(reason: ReasonCode, label: &'static str, cause: impl Into<String>) -> Self {
        Self { reason: Some(reason), cause: cause.into(), label: Some(label) }
    }

    /// Whether a packet of the peer is the cause, such as a malformed one.
    pub(crate) fn is_peer_fault(&self) -> bool {
        let labels = ["malformed", "protocol", "receive_maximum", "topic_alias", "unreleased"];
        self.label.is_some_and(|label| labels.contains(&label))
    }

    /// The session ends without a refusal: the client has disconnected or is gone, or CONNACK had the reason.
    pub(crate) fn normal(cause: impl Into<String>) -> Self {
        Self { reason: None, cause: cause.into(), label: None }
    }
}

/// Why a session did not handle a packet.
#[derive(Debug)]
pub(crate) enum PacketError {
    End(SessionEnd),
    /// The store has no room. The session has changed nothing; the worker passes the same packet again later.
    StoreBusy,
    /// The registry adds devices that the message names. As above, the session has changed nothing; the worker passes the same
    /// packet again when the connection is woken.
    Awaited,
    /// The door accepts no further message for this time. As above, the session has changed nothing.
    TooManyRequests(Duration),
    /// The tenant may send no further message for this time. As above, the session has changed nothing.
    TenantLimited(Duration),
}

impl From<SessionEnd> for PacketError {
    fn from(end: SessionEnd) -> Self {
        Self::End(end)
    }
}

/// The peer broke the protocol.
pub(crate) fn protocol_error(cause: &str) -> SessionEnd {
    SessionEnd::refused(ReasonCode::PROTOCOL_ERROR, "protocol", cause)
}
