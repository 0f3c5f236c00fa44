//! What happens to a client.

use crate::mqtt::{
    Ack, Auth, ConnAck, Disconnect, PacketType, Properties, Publish, ReasonCode, SubAck, UnsubAck,
};

/// Something that the server sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The server accepted the connection.
    Connected(ConnAck<'a>),
    /// The server refused the connection. It is over.
    Refused(ConnAck<'a>),
    /// The last answer to a message of the client.
    Acknowledged {
        /// The message.
        packet_id: u16,
        /// PUBACK, PUBREC (a refusal) or PUBCOMP.
        packet: PacketType,
        /// Whether the server took the message.
        reason: ReasonCode,
        /// MQTT 5 only.
        properties: Properties<'a>,
    },
    /// A message that gets no answer on this connection. The server lost the session after it had received the message
    /// (success), or it does not accept such a message (the reason; nothing was sent).
    Settled {
        /// The message.
        packet_id: u16,
        /// Whether the server took the message.
        reason: ReasonCode,
    },
    /// The server has a message of QoS 2 (PUBREC). The session answered with PUBREL.
    Received(Ack<'a>),
    /// A message for the client. At QoS 1 and 2 it waits for [`super::Session::acknowledge`].
    Message(Publish<'a>),
    /// A message of QoS 2 that came before. It needs no new ack if the client acknowledged it.
    Repeated(Publish<'a>),
    /// The server will not send a message of QoS 2 again (PUBREL). The session answered with PUBCOMP.
    Released(Ack<'a>),
    /// The answer to a SUBSCRIBE.
    Subscribed(SubAck<'a>),
    /// The answer to an UNSUBSCRIBE.
    Unsubscribed(UnsubAck<'a>),
    /// PINGRESP.
    Pong,
    /// A step of an extended authentication.
    Authentication(Auth<'a>),
    /// The server ended the connection.
    Disconnected(Disconnect<'a>),
}
