//! The session of a client that asks for credentials: it logs in with the user name `provision`, and may do nothing else.

use hub::registry::PROVISION_USER_NAME;
use wire::mqtt::{
    Ack, ConnAck, Connect, Packet, Properties, PropertiesBuilder, Property, PropertyId, ProtocolVersion,
    Publish, QoS, ReasonCode, SubAck, Subscribe, UnsubAck,
};
use wire::thingsboard::protobuf::{provision_answer, read_provision_or_json};
use wire::thingsboard::provision::{REQUEST_TOPIC, RESPONSE_TOPIC};

use super::super::provisioner::Provision;
use super::connect_terms::{assigned_client_id, check_terms, granted_keep_alive_s, silence_max_s};
use super::context::Context;
use super::end::{PacketError, SessionEnd, protocol_error};
use super::peer::Peer;
use super::refused_connect::RefusedConnect;

/// The session of a client without credentials.
#[derive(Debug)]
pub(crate) struct Provisioning {
    pub(crate) peer: Peer,
    /// Seconds of silence after which the worker closes the connection; 0 for no bound.
    pub(crate) silence_max_s: u32,
    /// The request that the registry works on.
    under_way: Option<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    request: Provision,
    /// Whether the answer is Protobuf, as the request was.
    is_protobuf: bool,
}

/// Whether a client asks for credentials instead of logging in.
pub(super) fn asks_for_credentials(connect: &Connect<'_>) -> bool {
    match connect.username.filter(|name| !name.is_empty()) {
        Some(name) => name == PROVISION_USER_NAME,
        None => connect.client_id == PROVISION_USER_NAME,
    }
}

impl Provisioning {
    /// Accepts a client that asks for credentials. Writes the CONNACK.
    pub(super) fn admit(connect: &Connect<'_>, context: &mut Context<'_>) -> Result<Self, RefusedConnect> {
        check_terms(connect)?;
        let (keep_alive_s, assigned) = (granted_keep_alive_s(connect, context), assigned_client_id(connect));
        let mut properties = PropertiesBuilder::new();
        if connect.version == ProtocolVersion::V5 {
            let terms = [
                (keep_alive_s != connect.keep_alive_s)
                    .then_some(Property::TwoBytes(PropertyId::ServerKeepAlive, keep_alive_s)),
                assigned.as_deref().map(|id| Property::Text(PropertyId::AssignedClientIdentifier, id)),
            ];
            for property in terms.into_iter().flatten() {
                properties.push(property).expect("BUG: the terms of a session are short");
            }
        }
        let packet = |properties| Packet::ConnAck(ConnAck { session_present: false, code: 0, properties });
        let peer = Peer::of(connect);
        peer.write(&[packet(properties.as_properties()), packet(Properties::NONE)], context.out);
        Ok(Self { peer, silence_max_s: silence_max_s(keep_alive_s), under_way: None })
    }

    pub(super) fn on_packet(
        &mut self,
        packet: Packet<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), PacketError> {
        match packet {
            Packet::Publish(publish) => self.on_publish(&publish, context),
            Packet::Subscribe(subscribe) => {
                self.on_subscribe(subscribe, context);
                Ok(())
            }
            Packet::Unsubscribe(unsubscribe) => {
                let codes = vec![ReasonCode::SUCCESS.0; unsubscribe.filters().count()];
                let packet_id = unsubscribe.packet_id;
                let ack = UnsubAck { packet_id, properties: Properties::NONE, codes: &codes };
                self.peer.write(&[Packet::UnsubAck(ack)], context.out);
                Ok(())
            }
            Packet::PingReq => {
                self.peer.write(&[Packet::PingResp], context.out);
                Ok(())
            }
            Packet::Disconnect(_) => Err(SessionEnd::normal("the client disconnected").into()),
            _ => Err(protocol_error("a client that asks for credentials sends no such packet").into()),
        }
    }

    /// The answer comes at QoS 0.
    fn on_subscribe(&self, subscribe: Subscribe<'_>, context: &mut Context<'_>) {
        let refused = match self.peer.version {
            ProtocolVersion::V5 => ReasonCode::NOT_AUTHORIZED.0,
            ProtocolVersion::V31 | ProtocolVersion::V311 => 0x80,
        };
        let code = |topic: &str| if topic == RESPONSE_TOPIC { ReasonCode::SUCCESS.0 } else { refused };
        let codes: Vec<u8> = subscribe.filters().map(|filter| code(filter.topic)).collect();
        let ack = SubAck { packet_id: subscribe.packet_id, properties: Properties::NONE, codes: &codes };
        self.peer.write(&[Packet::SubAck(ack)], context.out);
    }

    /// A request waits, with all that comes after it, until the registry has done its work; then the worker passes it again.
    fn on_publish(&mut self, publish: &Publish<'_>, context: &mut Context<'_>) -> Result<(), PacketError> {
        if let Some(under_way) = &self.under_way {
            let Some(answer) = under_way.request.answer() else { return Err(PacketError::Awaited) };
            let payload = match under_way.is_protobuf {
                true => provision_answer(answer),
                false => answer.json().into_bytes(),
            };
            self.acknowledge(publish, context);
            let answer = Packet::Publish(Publish::new(RESPONSE_TOPIC, QoS::AtMostOnce, &payload));
            self.peer.write(&[answer], context.out);
            self.under_way = None;
            return Ok(());
        }
        if publish.topic != REQUEST_TOPIC {
            let cause = format!("a client that asks for credentials may publish to {REQUEST_TOPIC} only");
            return Err(SessionEnd::refused(ReasonCode::TOPIC_NAME_INVALID, "topic", cause).into());
        }
        if publish.qos == QoS::ExactlyOnce {
            let cause = "a request for credentials has QoS 0 or 1";
            return Err(SessionEnd::refused(ReasonCode::QOS_NOT_SUPPORTED, "provision", cause).into());
        }
        let (request, is_protobuf) = read_provision_or_json(publish.payload).map_err(|wrong| {
            SessionEnd::refused(ReasonCode::PAYLOAD_FORMAT_INVALID, "provision", wrong.to_string())
        })?;
        context.gate.take_request().map_err(PacketError::TooManyRequests)?;
        let begun = context.provisioner.begin(request, context.peer, (context.wake)());
        let busy = || {
            let cause = "too many devices ask for credentials; try again in a second";
            SessionEnd::refused(ReasonCode::SERVER_BUSY, "provision_busy", cause)
        };
        self.under_way = Some(UnderWay { request: begun.ok_or_else(busy)?, is_protobuf });
        Err(PacketError::Awaited)
    }

    fn acknowledge(&self, publish: &Publish<'_>, context: &mut Context<'_>) {
        if let Some(packet_id) = publish.packet_id {
            self.peer.write(&[Packet::PubAck(Ack::success(packet_id))], context.out);
        }
    }
}
