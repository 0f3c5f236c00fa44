//! The state machine of a session: before CONNECT and after it.

use hub::Door;
use hub::broker::Broker;
use wire::mqtt::{Connect, Packet, Properties, ProtocolVersion, ReasonCode, encode};

use super::super::clients::Clients;
use super::super::limits;
use super::super::options::MqttOptions;
use super::super::provisioner::{Join, Joined};
use super::super::qos2::SharedQos2;
use super::connect::admit;
use super::connected::Connected;
use super::context::Context;
use super::end::{PacketError, SessionEnd, protocol_error};
use super::new_certificate;
use super::peer::Peer;
use super::provisioning::{Provisioning, asks_for_credentials};
use super::refused_connect::RefusedConnect;
use crate::refusals;

/// The session of one connection.
#[derive(Debug, Default)]
pub(crate) enum Session {
    /// Before CONNECT.
    #[default]
    New,
    /// With a CONNECT that waits for the device of its certificate.
    Joining(Box<Join>),
    /// After an accepted CONNECT.
    Connected(Box<Connected>),
    /// After the CONNECT of a client that asks for credentials.
    Provisioning(Box<Provisioning>),
}

impl Session {
    /// The terms of the peer; `None` before CONNECT.
    pub(crate) fn peer(&self) -> Option<&Peer> {
        match self {
            Self::New | Self::Joining(_) => None,
            Self::Connected(connected) => Some(&connected.peer),
            Self::Provisioning(asking) => Some(&asking.peer),
        }
    }

    /// The protocol version of the session; `None` before CONNECT.
    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        self.peer().map(|peer| peer.version)
    }

    /// Bytes of the largest packet that the peer may send.
    pub(crate) fn packet_bytes_max(&self, options: &MqttOptions) -> usize {
        match self {
            Self::New | Self::Joining(_) => limits::CONNECT_BYTES_MAX.min(options.packet_bytes_max),
            Self::Provisioning(_) => limits::PROVISION_PACKET_BYTES_MAX.min(options.packet_bytes_max),
            Self::Connected(_) => options.packet_bytes_max,
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
                match new_certificate::begin(&connect, context) {
                    Ok(None) => *self = accept(&connect, None, context)?,
                    Ok(Some(join)) => {
                        *self = Self::Joining(Box::new(join));
                        return Err(PacketError::Awaited);
                    }
                    Err(refused) => return Err(refuse(refused, &connect, context).into()),
                }
                self.begin_connected(context);
                Ok(())
            }
            (Self::Joining(join), Packet::Connect(connect)) => {
                let Some(result) = join.result() else { return Err(PacketError::Awaited) };
                let joined = result.clone();
                *self = accept(&connect, Some(joined), context)?;
                self.begin_connected(context);
                Ok(())
            }
            (Self::New | Self::Joining(_), _) => {
                Err(protocol_error("the first packet is not CONNECT [MQTT-3.1.0-1]").into())
            }
            (Self::Provisioning(asking), packet) => asking.on_packet(packet, context),
            (Self::Connected(connected), packet) => {
                // A DISCONNECT does not make an inactive device active.
                if let Some(presence) = &connected.presence
                    && !matches!(packet, Packet::Disconnect(_))
                {
                    presence.touch(context.now_ms());
                }
                match packet {
                    Packet::Publish(publish) => connected.on_publish(&publish, context),
                    packet => connected.on_packet(packet, context),
                }
            }
        }
    }

    fn begin_connected(&mut self, context: &mut Context<'_>) {
        if let Self::Connected(connected) = self {
            connected.end_forbidden_subscriptions(context.hub, context.options);
            context.hub.broker().client_connected();
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
        connected.tenant_connection = None;
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

/// Accepts or refuses a client. Writes the CONNACK in both cases. `joined` is the device that its certificate names.
fn accept(
    connect: &Connect<'_>,
    joined: Option<Joined>,
    context: &mut Context<'_>,
) -> Result<Session, SessionEnd> {
    if let Some(exceeded) = context.exceeded {
        // The refusal was counted when the connection came.
        let refused = RefusedConnect::above_limit(exceeded);
        refused.write(connect, context);
        return Err(SessionEnd::normal(refused.cause));
    }
    let accepted = match asks_for_credentials(connect) {
        true => Provisioning::admit(connect, context).map(|asking| Session::Provisioning(Box::new(asking))),
        false => admit(connect, joined, context).map(|connected| Session::Connected(Box::new(connected))),
    };
    accepted.map_err(|refused| refuse(refused, connect, context))
}

/// Writes the CONNACK of a refusal.
fn refuse(refused: RefusedConnect, connect: &Connect<'_>, context: &mut Context<'_>) -> SessionEnd {
    refused.write(connect, context);
    context.hub.metrics().refused(Door::Mqtt, refused.label);
    if refused.is_about_credentials() {
        // The log omits the client identifier: a device may have sent its token there.
        refusals::credentials(context.hub, Door::Mqtt, Some(context.peer), &refused.cause);
    }
    SessionEnd::normal(refused.cause)
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
