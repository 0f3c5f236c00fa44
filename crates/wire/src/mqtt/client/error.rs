//! Errors of a client.

use std::fmt;

use crate::mqtt::{DecodeError, EncodeError, PacketType, ReasonCode};

/// The server broke the protocol. The client must close the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveError {
    /// The packet; `None` if its type does not exist.
    pub packet: Option<PacketType>,
    /// Position of the fault: bytes that the server sent on this connection before it.
    pub offset: u64,
    /// The fault.
    pub fault: Fault,
}

/// The rule that the server broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The bytes are not a packet.
    Decode(DecodeError),
    /// A server does not send this packet, or not at this time.
    Order(&'static str),
    /// The answer belongs to nothing that the client sent.
    UnknownPacketId(u16),
    /// The server has more unacknowledged messages under way than the client allows.
    ReceiveMaximum(u16),
}

impl ReceiveError {
    /// The code for the DISCONNECT with which an MQTT 5 client may leave.
    pub const fn reason_code(&self) -> ReasonCode {
        match self.fault {
            Fault::Decode(error) => error.reason_code(),
            Fault::Order(_) | Fault::UnknownPacketId(_) => ReasonCode::PROTOCOL_ERROR,
            Fault::ReceiveMaximum(_) => ReasonCode::RECEIVE_MAXIMUM_EXCEEDED,
        }
    }
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packet = self.packet.map_or("a packet", PacketType::name);
        write!(f, "the server broke the protocol: {packet}, byte {}: ", self.offset)?;
        match self.fault {
            Fault::Decode(error) => write!(f, "{} ({})", error.cause, error.reason_code()),
            Fault::Order(cause) => f.write_str(cause),
            Fault::UnknownPacketId(id) => {
                write!(f, "nothing with packet identifier {id} waits for this answer")
            }
            Fault::ReceiveMaximum(max) => {
                write!(f, "more than {max} unacknowledged messages, the receive maximum [MQTT-3.3.4-9]")
            }
        }
    }
}

impl std::error::Error for ReceiveError {}

/// A command that the client cannot carry out. Nothing is sent and nothing is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The packet cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The command needs a connection.
    #[error("the client is not connected")]
    NotConnected,
    /// The queue is full.
    #[error("{max} messages wait for their answers, and no more may wait")]
    QueueFull {
        /// The limit of the client.
        max: usize,
    },
    /// The server said in CONNACK that it does not take such messages.
    #[error("the server does not accept such a message: {0}")]
    NotTaken(ReasonCode),
    /// The message with this identifier waits for no ack: it was acknowledged before, or it came on an earlier connection.
    #[error("the message with packet identifier {0} waits for no ack")]
    NothingToAcknowledge(u16),
}
