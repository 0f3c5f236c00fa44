//! Control packets: decodes and encodes a packet of any type.

use super::ack::{self, Ack, Auth, Disconnect};
use super::connect::{self, ConnAck, Connect};
use super::error::{DecodeError, EncodeError};
use super::fixed_header::FixedHeader;
use super::packet_type::PacketType;
use super::publish::{self, Publish};
use super::reader::{self, Reader};
use super::subscribe::{self, SubAck, Subscribe, UnsubAck, Unsubscribe};
use super::version::ProtocolVersion;
use super::writer;

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

/// A decoded packet and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The packet.
    pub packet: Packet<'a>,
    /// Bytes of input that the packet took.
    pub consumed: usize,
}

/// Decodes the packet at the beginning of `input`; `Ok(None)` when bytes are missing.
///
/// `version` is `None` before the first CONNECT. The decoder then accepts only CONNECT, which names its own version. With
/// `Some`, a CONNECT is the forbidden second one. `packet_bytes_max` bounds a whole packet; the decoder refuses a larger
/// one as soon as it knows the length.
///
/// The caller checks directions: a server must refuse CONNACK and the like, and content that a client may not send (a
/// Subscription Identifier in PUBLISH [MQTT-3.3.4-6]).
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
    // Without a version only CONNECT gets here, and it names its own version.
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
        // The version decides whether the length must be the shortest one.
        reader::check_shortest(header.remaining, header.length_bytes).map_err(|error| error.at(1))?;
    }
    Ok(connect)
}

/// Appends the packet's bytes to `out`. On an error `out` is as it was.
///
/// The encoder applies the rules that [`decode`] checks: wrong reason codes, misplaced properties or topics with wildcards
/// are errors. It writes CONNECT in the version of the CONNECT, not in `version`. For versions before MQTT 5 it leaves out
/// properties and the reason codes of acks.
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
