//! Packets: one place that tells the types apart, for both directions.

use super::ack::{self, Ack, Auth, Disconnect};
use super::connect::{self, ConnAck, Connect};
use super::error::{DecodeError, EncodeError};
use super::fixed_header::{FixedHeader, PacketType};
use super::publish::{self, Publish};
use super::reader::{self, Reader};
use super::subscribe::{self, SubAck, Subscribe, UnsubAck, Unsubscribe};
use super::writer;

/// Versions of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtocolVersion {
    /// MQTT 3.1, protocol name `MQIsdp` and level 3: what GSM modems and old libraries speak.
    V31,
    /// MQTT 3.1.1, protocol level 4.
    V311,
    /// MQTT 5.0, protocol level 5.
    V5,
}

/// How often a message may arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QoS {
    /// 0: at most once.
    AtMostOnce = 0,
    /// 1: at least once.
    AtLeastOnce = 1,
    /// 2: exactly once.
    ExactlyOnce = 2,
}

impl QoS {
    pub(super) const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }
}

/// A control packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names are the specification's.
pub enum Packet<'a> {
    Connect(Connect<'a>),
    ConnAck(ConnAck<'a>),
    Publish(Publish<'a>),
    PubAck(Ack<'a>),
    PubRec(Ack<'a>),
    PubRel(Ack<'a>),
    PubComp(Ack<'a>),
    Subscribe(Subscribe<'a>),
    SubAck(SubAck<'a>),
    Unsubscribe(Unsubscribe<'a>),
    UnsubAck(UnsubAck<'a>),
    PingReq,
    PingResp,
    Disconnect(Disconnect<'a>),
    Auth(Auth<'a>),
}

/// A packet and how many bytes it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The packet.
    pub packet: Packet<'a>,
    /// Bytes of input it took.
    pub consumed: usize,
}

/// Decodes the packet at the beginning of `input`; `Ok(None)` when bytes are missing.
///
/// `version` is `None` on a connection that has not seen CONNECT: only CONNECT is accepted then, and it names its own
/// version. With `Some` a CONNECT is the forbidden second one. `packet_bytes_max` bounds a whole packet; a larger one
/// is refused as soon as its length is known.
///
/// Directions are the caller's business: a server has to refuse CONNACK and the like by itself, and so what a client
/// may not say inside of a packet (a Subscription Identifier in PUBLISH [MQTT-3.3.4-6]).
pub fn decode(
    input: &[u8],
    version: Option<ProtocolVersion>,
    packet_bytes_max: usize,
) -> Result<Option<Decoded<'_>>, DecodeError> {
    let Some(header) = FixedHeader::read(input, version, packet_bytes_max)? else { return Ok(None) };
    let consumed = header.packet_bytes();
    if input.len() < consumed {
        return Ok(None);
    }
    let at = header.header_bytes();
    let packet = decode_body(&header, Reader::new(&input[at..consumed], at), version)?;
    Ok(Some(Decoded { packet, consumed }))
}

fn decode_body<'a>(
    header: &FixedHeader,
    mut body: Reader<'a>,
    version: Option<ProtocolVersion>,
) -> Result<Packet<'a>, DecodeError> {
    let packet_type = header.packet_type;
    // Only CONNECT comes without a version, and it brings its own.
    let v5 = version == Some(ProtocolVersion::V5);
    let packet = match packet_type {
        PacketType::Connect => Packet::Connect(decode_connect(header, &mut body)?),
        PacketType::ConnAck => Packet::ConnAck(connect::decode_connack(&mut body, v5)?),
        PacketType::Publish => Packet::Publish(publish::decode(header.flags, &mut body, v5)?),
        PacketType::PubAck => Packet::PubAck(ack::decode(packet_type, &mut body, v5)?),
        PacketType::PubRec => Packet::PubRec(ack::decode(packet_type, &mut body, v5)?),
        PacketType::PubRel => Packet::PubRel(ack::decode(packet_type, &mut body, v5)?),
        PacketType::PubComp => Packet::PubComp(ack::decode(packet_type, &mut body, v5)?),
        PacketType::Subscribe => Packet::Subscribe(subscribe::decode_subscribe(&mut body, v5)?),
        PacketType::SubAck => Packet::SubAck(subscribe::decode_suback(&mut body, v5)?),
        PacketType::Unsubscribe => Packet::Unsubscribe(subscribe::decode_unsubscribe(&mut body, v5)?),
        PacketType::UnsubAck => Packet::UnsubAck(subscribe::decode_unsuback(&mut body, v5)?),
        PacketType::PingReq => Packet::PingReq,
        PacketType::PingResp => Packet::PingResp,
        PacketType::Disconnect => Packet::Disconnect(ack::decode_disconnect(&mut body, v5)?),
        PacketType::Auth => Packet::Auth(ack::decode_auth(&mut body)?),
    };
    body.end()?;
    Ok(packet)
}

fn decode_connect<'a>(header: &FixedHeader, body: &mut Reader<'a>) -> Result<Connect<'a>, DecodeError> {
    let connect = connect::decode_connect(body)?;
    if connect.version == ProtocolVersion::V5 {
        // Only now it is known which rule the length had to obey.
        reader::check_shortest(header.remaining, header.length_bytes).map_err(|error| error.at(1))?;
    }
    Ok(connect)
}

/// Appends the packet's bytes to `out`. On an error `out` is as it was.
///
/// What is written obeys the rules that [`decode`] checks, so a peer has no reason to refuse it: wrong reason codes,
/// misplaced properties or topics with wildcards are errors. CONNECT is written in its own version, not in `version`.
/// Before MQTT 5 properties and the reason codes of acks do not exist and are left out.
pub fn encode(packet: &Packet<'_>, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let v5 = version == ProtocolVersion::V5;
    match packet {
        Packet::Connect(connect) => connect::encode_connect(connect, out),
        Packet::ConnAck(connack) => connect::encode_connack(connack, v5, out),
        Packet::Publish(publish) => publish::encode(publish, v5, out),
        Packet::PubAck(ack) => ack::encode(PacketType::PubAck, ack, v5, out),
        Packet::PubRec(ack) => ack::encode(PacketType::PubRec, ack, v5, out),
        Packet::PubRel(ack) => ack::encode(PacketType::PubRel, ack, v5, out),
        Packet::PubComp(ack) => ack::encode(PacketType::PubComp, ack, v5, out),
        Packet::Subscribe(subscribe) => subscribe::encode_subscribe(subscribe, v5, out),
        Packet::SubAck(suback) => subscribe::encode_suback(suback, v5, out),
        Packet::Unsubscribe(unsubscribe) => subscribe::encode_unsubscribe(unsubscribe, v5, out),
        Packet::UnsubAck(unsuback) => subscribe::encode_unsuback(unsuback, v5, out),
        Packet::PingReq => writer::packet(PacketType::PingReq.first_byte(), out, |_| Ok(())),
        Packet::PingResp => writer::packet(PacketType::PingResp.first_byte(), out, |_| Ok(())),
        Packet::Disconnect(disconnect) => ack::encode_disconnect(disconnect, v5, out),
        Packet::Auth(_) if !v5 => Err(EncodeError::NotInThisVersion),
        Packet::Auth(auth) => ack::encode_auth(auth, out),
    }
}
