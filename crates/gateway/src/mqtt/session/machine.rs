//! The state machine of a session: before CONNECT and after it.

use hub::broker::Broker;
use wire::mqtt::{Packet, Properties, ProtocolVersion, ReasonCode, encode};

use super::super::clients::Clients;
use super::super::qos2::SharedQos2;
use super::connected::Connected;
use super::context::Context;
use super::end::{PacketError, protocol_error};

/// The session of one connection.
#[derive(Debug, Default)]
pub(crate) enum Session {
    /// Before CONNECT.
    #[default]
    New,
    /// After an accepted CONNECT.
    Connected(Box<Connected>),
}

impl Session {
    /// The protocol version of the session; `None` before CONNECT.
    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        match self {
            Self::New => None,
            Self::Connected(connected) => Some(connected.peer.version),
        }
    }

    /// Handles one packet of the peer.
    pub(crate) fn on_packet(
        &mut self,
        packet: Packet<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), PacketError> {
        match (&mut *self, packet) {
            (Self::New, Packet::Connect(connect)) => {
                let mut connected = Box::new(Connected::accept(&connect, context)?);
                connected.end_forbidden_subscriptions(context.hub, context.options);
                *self = Self::Connected(connected);
                context.hub.broker().client_connected();
                Ok(())
            }
            (Self::New, _) => Err(protocol_error("the first packet is not CONNECT [MQTT-3.1.0-1]").into()),
            (Self::Connected(connected), packet) => {
                if let Some(presence) = &connected.presence {
                    presence.touch(context.now_ms());
                }
                match packet {
                    Packet::Publish(publish) => connected.on_publish(&publish, context),
                    packet => connected.on_packet(packet, context),
                }
            }
        }
    }

    /// Unregisters the connection. Returns the session if it has a will to publish; a DISCONNECT has removed the will.
    pub(crate) fn end(
        self,
        clients: &Clients,
        broker: &Broker,
        now_s: u32,
        now_ms: i64,
    ) -> Option<Box<Connected>> {
        let Self::Connected(mut connected) = self else { return None };
        broker.client_left();
        clients.unregister(&connected.client, connected.connection, connected.expiry_s, now_s);
        connected.presence = None;
        connected.outbox = None;
        // A will of a gateway attaches the devices that it names for itself.
        connected.behind.iter_mut().for_each(|behind| behind.detach_all());
        if let Some(attached) = connected.attached.take() {
            broker.detach(&attached, connected.expiry_s, now_ms);
        }
        // The will needs neither topic aliases nor QoS 2 identifiers.
        connected.aliases = Vec::new();
        connected.qos2 = SharedQos2::default();
        connected.will.is_some().then_some(connected)
    }
}

/// Answers a CONNECT of an unsupported version with a CONNACK as both versions specify it [MQTT-3.1.2-2]. Other malformed
/// input gets no answer.
pub(crate) fn answer_malformed_connect(error: &wire::mqtt::DecodeError, out: &mut Vec<u8>) {
    if error.reason_code() == ReasonCode::UNSUPPORTED_PROTOCOL_VERSION {
        let code = wire::mqtt::ConnectReturnCode::UNACCEPTABLE_PROTOCOL_VERSION;
        let connack = wire::mqtt::ConnAck { session_present: false, code, properties: Properties::NONE };
        encode(&Packet::ConnAck(connack), ProtocolVersion::V311, out).expect("BUG: a CONNACK is short");
    }
}
