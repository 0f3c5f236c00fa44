//! One MQTT session as a state machine: packets in, replies and rows out. Sockets and time belong to the worker.
//!
//! A message is answered in three steps: its rows enter the turn's batch, its ack is remembered beside them, and the
//! worker sends the ack when the batch is as durable as the device's profile asks for. Only answers that promise
//! nothing about data (CONNACK, PINGRESP, SUBACK, PUBCOMP) are written at once.

mod connect;
mod peer;
mod publish;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use hub::Hub;
use hub::registry::{Device, Registry};
use model::{SeriesId, Timestamp};
use wire::mqtt::{
    Ack, Disconnect, Packet, Properties, PropertiesBuilder, PropertyId, ProtocolVersion, ReasonCode, SubAck,
    UnsubAck, encode,
};

use super::MqttOptions;
use super::clients::{ClientKey, Clients, Place};
use super::received::ReceivedIds;
use super::turn::TurnBatch;
use peer::reason_string;

pub(crate) use peer::Peer;
pub(crate) use publish::TELEMETRY_TOPIC;

/// What a session may use while it handles a packet.
pub(crate) struct Context<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) options: &'a MqttOptions,
    pub(crate) clients: &'a Clients,
    /// Where this session lives.
    pub(crate) place: Place,
    /// The other end of its connection.
    pub(crate) peer: SocketAddr,
    /// The system clock when the bytes were read that are handled.
    pub(crate) now: Timestamp,
    /// The receipt time of the first row of what is handled, if it was given out earlier.
    pub(crate) received: Option<Timestamp>,
    /// Seconds since the door was opened.
    pub(crate) now_s: u32,
    /// Whether messages are taken; while the store has no room they are not.
    pub(crate) takes_messages: bool,
    /// Bytes to send at once.
    pub(crate) out: &'a mut Vec<u8>,
    /// Rows and acks by durability class.
    pub(crate) turn: &'a mut [TurnBatch; 3],
    /// A connection that has to go because this one took its client identifier over.
    pub(crate) taken_over: &'a mut Option<Place>,
}

/// Why a session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Close {
    /// What an MQTT 5 peer is told; `None` when it is told nothing.
    pub(crate) reason: Option<ReasonCode>,
    /// For the log and the reason string.
    pub(crate) cause: String,
    /// A short, stable name for metrics; `None` when nothing was refused.
    pub(crate) label: Option<&'static str>,
}

impl Close {
    pub(crate) fn refused(reason: ReasonCode, label: &'static str, cause: impl Into<String>) -> Self {
        Self { reason: Some(reason), cause: cause.into(), label: Some(label) }
    }

    /// Whether the peer's own packet is the cause, such as a malformed one.
    pub(crate) fn is_for_what_came(&self) -> bool {
        let labels = ["malformed", "protocol", "receive_maximum", "topic_alias", "unreleased"];
        self.label.is_some_and(|label| labels.contains(&label))
    }

    /// The peer said goodbye, or was told all it needs in a CONNACK.
    pub(crate) fn quiet(cause: impl Into<String>) -> Self {
        Self { reason: None, cause: cause.into(), label: None }
    }
}

/// Why a packet was not handled.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The session ends.
    Close(Close),
    /// Not now: the same packet is to be handled again when the store has room. Nothing was changed.
    NotNow,
}

impl From<Close> for Halt {
    fn from(close: Close) -> Self {
        Self::Close(close)
    }
}

/// The state of one connection.
#[derive(Debug, Default)]
pub(crate) enum Session {
    /// No CONNECT yet.
    #[default]
    New,
    /// CONNECT was accepted.
    Connected(Box<Connected>),
}

/// A session whose device is known. It holds a secret, so it has no `Debug` of its own.
pub(crate) struct Connected {
    pub(crate) peer: Peer,
    pub(crate) device: Arc<Device>,
    /// The access token that opened the session.
    token: Arc<str>,
    client: ClientKey,
    place: Place,
    /// Seconds of silence after which the peer is gone; 0 for no bound.
    pub(crate) silence_max_s: u32,
    /// Known from the first message on.
    series: Option<SeriesId>,
    /// Acks not yet sent.
    pub(crate) in_flight: u32,
    received: ReceivedIds,
    keep_received_s: u32,
    aliases: Vec<Option<Arc<str>>>,
    will: Option<Box<StoredWill>>,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").field("device", &self.device.name).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct StoredWill {
    topic: Box<str>,
    payload: Box<[u8]>,
}

impl Session {
    /// The version in which later packets are read.
    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        match self {
            Self::New => None,
            Self::Connected(connected) => Some(connected.peer.version),
        }
    }

    /// Handles one packet of the peer.
    pub(crate) fn on_packet(&mut self, packet: Packet<'_>, context: &mut Context<'_>) -> Result<(), Halt> {
        match (&mut *self, packet) {
            (Self::New, Packet::Connect(connect)) => {
                *self = Self::Connected(Box::new(Connected::accept(&connect, context)?));
                Ok(())
            }
            (Self::New, _) => Err(protocol_error("the first packet is not CONNECT [MQTT-3.1.0-1]").into()),
            (Self::Connected(connected), Packet::Publish(publish)) => connected.on_publish(&publish, context),
            (Self::Connected(connected), packet) => Ok(connected.on_packet(packet, context)?),
        }
    }

    /// Gives the client identifier back. Returns the session if it has a will that is to be published, which a DISCONNECT
    /// has removed.
    pub(crate) fn end(self, clients: &Clients, now_s: u32) -> Option<Box<Connected>> {
        let Self::Connected(mut connected) = self else { return None };
        clients.leave(&connected.client, connected.place, connected.keep_received_s, now_s);
        // Nothing comes any more that these serve.
        connected.aliases = Vec::new();
        connected.received = ReceivedIds::default();
        connected.will.is_some().then_some(connected)
    }
}

impl Connected {
    /// Takes over what has become of the device. Its session ends when it is gone or its access token was replaced.
    pub(crate) fn follow(&mut self, registry: &Registry) -> Result<(), Close> {
        let device = registry.device_by_id(self.device.id);
        let token = registry.credentials_of(self.device.id);
        let (Some(device), Some(token)) = (device, token) else {
            return Err(Close::refused(
                ReasonCode::NOT_AUTHORIZED,
                "device_deleted",
                "the device was deleted",
            ));
        };
        if token != self.token {
            let cause = "the access token of the device was replaced";
            return Err(Close::refused(ReasonCode::NOT_AUTHORIZED, "token_replaced", cause));
        }
        if device != self.device {
            // Another name or another table is another series.
            self.series = None;
            self.device = device;
        }
        Ok(())
    }

    fn on_packet(&mut self, packet: Packet<'_>, context: &mut Context<'_>) -> Result<(), Close> {
        match packet {
            Packet::PubRel(release) => self.on_release(release, context),
            Packet::PingReq => self.send(Packet::PingResp, context),
            Packet::Subscribe(subscribe) => self.on_subscribe(subscribe, context),
            Packet::Unsubscribe(unsubscribe) => {
                let codes = vec![ReasonCode::NO_SUBSCRIPTION_EXISTED.0; unsubscribe.filters().count()];
                let ack = UnsubAck {
                    packet_id: unsubscribe.packet_id,
                    properties: Properties::NONE,
                    codes: &codes,
                };
                self.send(Packet::UnsubAck(ack), context)
            }
            Packet::Disconnect(disconnect) => self.on_disconnect(disconnect),
            Packet::Connect(_) => Err(protocol_error("a second CONNECT [MQTT-3.1.0-2]")),
            Packet::Auth(_) => Err(protocol_error("AUTH without an authentication method [MQTT5 4.12.0-7]")),
            // Nothing is ever published to a device yet, so no ack can be for us.
            Packet::PubAck(_) | Packet::PubRec(_) | Packet::PubComp(_) => {
                Err(protocol_error("an ack for a message that was never sent"))
            }
            Packet::Publish(_) => Err(protocol_error("BUG: a message in the wrong place")),
            Packet::ConnAck(_) | Packet::SubAck(_) | Packet::UnsubAck(_) | Packet::PingResp => {
                Err(protocol_error("a packet that only servers send"))
            }
        }
    }

    /// PUBREL ends a QoS 2 exchange: the identifier may be used again [MQTT-4.3.3-11].
    fn on_release(&mut self, release: Ack<'_>, context: &mut Context<'_>) -> Result<(), Close> {
        let known = self.received.lock().remove(release.packet_id);
        let reason = if known { ReasonCode::SUCCESS } else { ReasonCode::PACKET_IDENTIFIER_NOT_FOUND };
        let complete = Ack { packet_id: release.packet_id, reason, properties: Properties::NONE };
        self.send(Packet::PubComp(complete), context)
    }

    /// Subscriptions are not there yet, and the peer is told so.
    fn on_subscribe(
        &mut self,
        subscribe: wire::mqtt::Subscribe<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Close> {
        let code = match self.peer.version {
            ProtocolVersion::V5 => ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR.0,
            ProtocolVersion::V31 | ProtocolVersion::V311 => 0x80,
        };
        context.hub.metrics().refused(hub::Door::Mqtt, "subscription");
        let codes = vec![code; subscribe.filters().count()];
        let text = "subscriptions by MQTT are not served; use the WebSocket door";
        let packet_id = subscribe.packet_id;
        let packet = |properties| Packet::SubAck(SubAck { packet_id, properties, codes: &codes });
        self.peer.write_explained(text, packet, &mut PropertiesBuilder::new(), context.out);
        Ok(())
    }

    fn on_disconnect(&mut self, disconnect: Disconnect<'_>) -> Result<(), Close> {
        // 0x04 asks for the will in spite of the goodbye [MQTT5 3.14.2.1].
        if disconnect.reason != ReasonCode::DISCONNECT_WITH_WILL {
            self.will = None;
        }
        if let Some(seconds) = disconnect.properties.number(PropertyId::SessionExpiryInterval) {
            self.keep_received_s = seconds;
        }
        Err(Close::quiet("the client disconnected"))
    }

    /// Publishes the will of a session that has ended. `false` when the store has no room at the moment; a will that it
    /// takes in no form is lost, and somebody is told.
    pub(crate) fn publish_will(&mut self, context: &mut Context<'_>) -> bool {
        let Some(will) = self.will.take() else { return true };
        match self.on_unanswered(&will.topic, &will.payload, context) {
            Ok(()) => {}
            Err(Halt::Close(close)) => self.lose_will(context.hub, &close.cause),
            Err(Halt::NotNow) => {
                self.will = Some(will);
                return false;
            }
        }
        true
    }

    /// Says that the will is not stored.
    pub(crate) fn lose_will(&self, hub: &hub::Hub, cause: &str) {
        hub.metrics().refused(hub::Door::Mqtt, "will");
        tracing::warn!(device = %self.device.name, cause, "a will could not be stored");
    }

    /// Bytes that the will takes, and the client identifier.
    pub(crate) fn will_bytes(&self) -> usize {
        let will = self.will.as_ref().map_or(0, |will| will.topic.len() + will.payload.len());
        self.client.bytes() + will
    }

    fn send(&self, packet: Packet<'_>, context: &mut Context<'_>) -> Result<(), Close> {
        self.peer.write(&[packet], context.out);
        Ok(())
    }
}

pub(crate) fn protocol_error(cause: &str) -> Close {
    Close::refused(ReasonCode::PROTOCOL_ERROR, "protocol", cause)
}

/// A CONNECT of a version we do not speak is told so in the words of both versions' specifications
/// [MQTT-3.1.2-2]; everything else that is not a CONNECT gets silence.
pub(crate) fn answer_malformed_connect(error: &wire::mqtt::DecodeError, out: &mut Vec<u8>) {
    if error.reason_code() == ReasonCode::UNSUPPORTED_PROTOCOL_VERSION {
        let code = wire::mqtt::ConnectReturnCode::UNACCEPTABLE_PROTOCOL_VERSION;
        let connack = wire::mqtt::ConnAck { session_present: false, code, properties: Properties::NONE };
        encode(&Packet::ConnAck(connack), ProtocolVersion::V311, out).expect("BUG: a CONNACK is short");
    }
}
