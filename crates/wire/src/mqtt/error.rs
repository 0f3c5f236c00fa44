//! Why bytes are not a packet, and why a packet cannot become bytes.

use super::ReasonCode;

/// Bytes that break the protocol: always the peer's fault, and the end of its connection.
///
/// [`DecodeError::reason_code`] tells the kinds apart: `PACKET_TOO_LARGE`, `UNSUPPORTED_PROTOCOL_VERSION` and so on.
/// The code may always be sent: in CONNACK when no CONNECT had been seen, in DISCONNECT afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{cause} (at byte {offset} of the packet; {})", .reason)]
pub struct DecodeError {
    /// Offset from the first byte of the packet.
    pub offset: usize,
    /// What is wrong, with the clause it breaks where there is one.
    pub cause: &'static str,
    reason: ReasonCode,
}

impl DecodeError {
    pub(super) const fn new(reason: ReasonCode, cause: &'static str) -> Self {
        Self { offset: 0, cause, reason }
    }

    pub(super) const fn malformed(cause: &'static str) -> Self {
        Self::new(ReasonCode::MALFORMED_PACKET, cause)
    }

    pub(super) const fn protocol(cause: &'static str) -> Self {
        Self::new(ReasonCode::PROTOCOL_ERROR, cause)
    }

    pub(super) const fn at(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// The code with which a server closes the connection.
    pub const fn reason_code(&self) -> ReasonCode {
        self.reason
    }
}

/// A packet that has no encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A string or binary field of more than 65,535 bytes.
    #[error("{what} has {bytes} bytes; MQTT strings hold at most 65535")]
    StringTooLong {
        /// Which field.
        what: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// The packet is larger than a remaining length can say.
    #[error("the packet's remaining length is {bytes}; MQTT allows at most 268435455")]
    PacketTooLong {
        /// The remaining length it would need.
        bytes: usize,
    },
    /// A packet identifier of zero where one is needed [MQTT-2.2.1-3].
    #[error("the packet identifier is zero")]
    ZeroPacketId,
    /// The peer would have to refuse the packet.
    #[error("the packet would break the protocol: {cause}")]
    Invalid {
        /// What is wrong, with the clause it breaks where there is one.
        cause: &'static str,
    },
    /// The packet type does not exist in this version of the protocol.
    #[error("AUTH exists only in MQTT 5")]
    NotInThisVersion,
}

/// A packet is checked by the same rules on its way out as on its way in; only the offset means nothing there.
impl From<DecodeError> for EncodeError {
    fn from(error: DecodeError) -> Self {
        Self::Invalid { cause: error.cause }
    }
}
