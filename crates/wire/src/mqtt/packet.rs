//! Packets and their fixed header [MQTT5 2.1].

use super::ack::{self, Ack, Auth, Disconnect};
use super::connect::{self, ConnAck, Connect};
use super::error::{DecodeError, EncodeError};
use super::properties::Properties;
use super::publish::{self, Publish};
use super::reader::{self, Reader};
use super::subscribe::{self, SubAck, Subscribe, UnsubAck, Unsubscribe};
use super::{ReasonCode, writer};

/// Versions of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtocolVersion {
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

/// The type in the upper half of the first byte [MQTT5 table 2-1].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // The names are the specification's.
pub enum PacketType {
    Connect = 1,
    ConnAck = 2,
    Publish = 3,
    PubAck = 4,
    PubRec = 5,
    PubRel = 6,
    PubComp = 7,
    Subscribe = 8,
    SubAck = 9,
    Unsubscribe = 10,
    UnsubAck = 11,
    PingReq = 12,
    PingResp = 13,
    Disconnect = 14,
    Auth = 15,
}

impl PacketType {
    const fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            1 => Self::Connect,
            2 => Self::ConnAck,
            3 => Self::Publish,
            4 => Self::PubAck,
            5 => Self::PubRec,
            6 => Self::PubRel,
            7 => Self::PubComp,
            8 => Self::Subscribe,
            9 => Self::SubAck,
            10 => Self::Unsubscribe,
            11 => Self::UnsubAck,
            12 => Self::PingReq,
            13 => Self::PingResp,
            14 => Self::Disconnect,
            15 => Self::Auth,
            _ => return None,
        })
    }

    /// The fixed flags of every type but PUBLISH [MQTT-2.1.3-1].
    const fn flags(self) -> u8 {
        match self {
            Self::PubRel | Self::Subscribe | Self::Unsubscribe => 0b0010,
            _ => 0,
        }
    }

    pub(super) const fn first_byte(self) -> u8 {
        (self as u8) << 4 | self.flags()
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
/// version. `packet_bytes_max` bounds a whole packet; a larger one is refused as soon as its length is known.
pub fn decode(
    input: &[u8],
    version: Option<ProtocolVersion>,
    packet_bytes_max: usize,
) -> Result<Option<Decoded<'_>>, DecodeError> {
    let Some(first) = input.first() else { return Ok(None) };
    let packet_type = packet_type(*first, version)?;
    let Some((remaining, len_bytes)) = reader::variable_int(&input[1..]).map_err(|error| error.at(1))? else {
        return Ok(None);
    };
    let header = 1 + len_bytes;
    let consumed = header + remaining as usize;
    if consumed > packet_bytes_max {
        let too_large = "the packet is larger than the limit [MQTT-3.1.2-24]";
        return Err(DecodeError::new(ReasonCode::PACKET_TOO_LARGE, too_large).at(1));
    }
    if input.len() < consumed {
        return Ok(None);
    }
    let body = Reader::new(&input[header..consumed], header);
    let packet = decode_body(packet_type, first & 0x0f, body, version)?;
    Ok(Some(Decoded { packet, consumed }))
}

fn packet_type(first: u8, version: Option<ProtocolVersion>) -> Result<PacketType, DecodeError> {
    let packet_type = PacketType::from_bits(first >> 4)
        .ok_or(DecodeError::malformed("packet type 0 is reserved [MQTT5 2.1.2]"))?;
    if packet_type != PacketType::Publish && first & 0x0f != packet_type.flags() {
        return Err(DecodeError::malformed("reserved flags of the first byte are set [MQTT-2.1.3-1]"));
    }
    match (version, packet_type) {
        (None, PacketType::Connect) => Ok(packet_type),
        (None, _) => Err(DecodeError::protocol("the first packet is not CONNECT [MQTT-3.1.0-1]")),
        (Some(ProtocolVersion::V311), PacketType::Auth) => {
            Err(DecodeError::malformed("packet type 15 is reserved in MQTT 3.1.1"))
        }
        _ => Ok(packet_type),
    }
}

fn decode_body<'a>(
    packet_type: PacketType,
    flags: u8,
    mut body: Reader<'a>,
    version: Option<ProtocolVersion>,
) -> Result<Packet<'a>, DecodeError> {
    // Only CONNECT comes without a version, and it brings its own.
    let v5 = version == Some(ProtocolVersion::V5);
    let packet = match packet_type {
        PacketType::Connect => Packet::Connect(connect::decode_connect(&mut body)?),
        PacketType::ConnAck => Packet::ConnAck(connect::decode_connack(&mut body, v5)?),
        PacketType::Publish => Packet::Publish(publish::decode(flags, &mut body, v5)?),
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

/// Appends the packet's bytes to `out`. On an error `out` is as it was.
///
/// In MQTT 3.1.1 properties and the reason codes of acks do not exist and are left out.
pub fn encode(packet: &Packet<'_>, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let v5 = version == ProtocolVersion::V5;
    match packet {
        Packet::Connect(connect) => connect::encode_connect(connect, out),
        Packet::ConnAck(connack) => connect::encode_connack(connack, v5, out),
        Packet::Publish(publish) => encode_publish_packet(publish, v5, out),
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

fn encode_publish_packet(publish: &Publish<'_>, v5: bool, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let publish = if v5 { *publish } else { Publish { properties: Properties::NONE, ..*publish } };
    publish::encode(&publish, v5, out)
}
