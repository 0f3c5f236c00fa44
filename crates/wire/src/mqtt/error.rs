//! Errors of decoding and encoding.

use super::reason::ReasonCode;

/// The peer broke the protocol. The receiver must close the connection.
///
/// [`DecodeError::reason_code`] gives the kind, such as `PACKET_TOO_LARGE` or `UNSUPPORTED_PROTOCOL_VERSION`. A server may
/// send this code in CONNACK before the first CONNECT, and in DISCONNECT afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{cause} (at byte {offset} of the packet; {})", .reason)]
pub struct DecodeError {
    /// Offset from the first byte of the packet.
    pub offset: usize,
    /// The fault, with the clause of the specification if there is one.
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

/// A packet that cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A string or binary field of more than 65,535 bytes.
    #[error("{what} has {bytes} bytes; MQTT strings hold at most 65535")]
    StringTooLong {
        /// Name of the field.
        what: &'static str,
        /// Length of the field.
        bytes: usize,
    },
    /// The remaining length of the packet is above the protocol's maximum.
    #[error("the packet's remaining length is {bytes}; MQTT allows at most 268435455")]
    PacketTooLong {
        /// Remaining length of the packet.
        bytes: usize,
    },
    /// A packet identifier of zero where one is needed [MQTT-2.2.1-3].
    #[error("the packet identifier is zero")]
    ZeroPacketId,
    /// The packet breaks the protocol, so the peer would refuse it.
    #[error("the packet would break the protocol: {cause}")]
    Invalid {
        /// The fault, with the clause of the specification if there is one.
        cause: &'static str,
    },
    /// The packet type does not exist in this version of the protocol.
    #[error("AUTH exists only in MQTT 5")]
    NotInThisVersion,
}

/// `encode` uses the checks of `decode`; the offset has no meaning there.
impl From<DecodeError> for EncodeError {
    fn from(error: DecodeError) -> Self {
        Self::Invalid { cause: error.cause }
    }
}
