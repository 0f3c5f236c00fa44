//! The fixed header: packet type, flags and remaining length [MQTT5 2.1].

use super::error::DecodeError;
use super::packet_type::PacketType;
use super::qos::QoS;
use super::reader;
use super::reason::ReasonCode;
use super::version::ProtocolVersion;

/// The first two to five bytes of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct FixedHeader {
    pub(super) packet_type: PacketType,
    /// The lower half of the first byte. Only PUBLISH has flags that vary.
    pub(super) flags: u8,
    pub(super) remaining: u32,
    /// Bytes of the encoded remaining length.
    pub(super) length_bytes: usize,
}

impl FixedHeader {
    /// Reads a header; `None` when bytes are missing. Refuses a bad type, bad flags or a packet that is too large before
    /// the body arrives.
    pub(super) fn read(
        input: &[u8],
        version: Option<ProtocolVersion>,
        packet_bytes_max: usize,
    ) -> Result<Option<Self>, DecodeError> {
        let Some((&first, rest)) = input.split_first() else { return Ok(None) };
        let packet_type = packet_type(first, version)?;
        let length = reader::variable_int(rest).map_err(|error| error.at(1))?;
        let Some((remaining, length_bytes)) = length else { return Ok(None) };
        if version == Some(ProtocolVersion::V5) {
            reader::check_shortest(remaining, length_bytes).map_err(|error| error.at(1))?;
        }
        let header = Self { packet_type, flags: first & 0x0f, remaining, length_bytes };
        if header.packet_bytes() > packet_bytes_max {
            let cause = "the packet is larger than the limit [MQTT-3.1.2-24], [MQTT-3.2.2-15]";
            return Err(DecodeError::new(ReasonCode::PACKET_TOO_LARGE, cause).at(1));
        }
        Ok(Some(header))
    }

    /// Bytes before the body.
    pub(super) const fn header_bytes(&self) -> usize {
        1 + self.length_bytes
    }

    /// Bytes of the whole packet.
    pub(super) const fn packet_bytes(&self) -> usize {
        self.header_bytes() + self.remaining as usize
    }
}

/// The packets that `bytes` consist of, as types and lengths. It ends before a packet that is not whole.
pub fn whole_packets(bytes: &[u8]) -> impl Iterator<Item = (PacketType, usize)> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (&first, after) = rest.split_first()?;
        let (remaining, length_bytes) = reader::variable_int(after).ok()??;
        let length = 1 + length_bytes + remaining as usize;
        rest = rest.get(length..)?;
        Some((PacketType::from_bits(first >> 4)?, length))
    })
}

fn packet_type(first: u8, version: Option<ProtocolVersion>) -> Result<PacketType, DecodeError> {
    let packet_type = PacketType::from_bits(first >> 4)
        .ok_or(DecodeError::malformed("packet type 0 is reserved [MQTT5 2.1.2]"))?;
    // In MQTT 3.1 the flags of repeated PUBREL, SUBSCRIBE and UNSUBSCRIBE hold DUP, those of others nothing [MQTT31 2.1].
    if version != Some(ProtocolVersion::V31) || packet_type == PacketType::Publish {
        check_flags(packet_type, first & 0x0f)?;
    }
    match (version, packet_type) {
        (None, PacketType::Connect) => Ok(packet_type),
        (None, _) => Err(DecodeError::protocol("the first packet is not CONNECT [MQTT-3.1.0-1]")),
        (Some(_), PacketType::Connect) => Err(DecodeError::protocol("a second CONNECT [MQTT-3.1.0-2]")),
        (Some(ProtocolVersion::V31 | ProtocolVersion::V311), PacketType::Auth) => {
            Err(DecodeError::malformed("packet type 15 is reserved before MQTT 5 [MQTT311 2.2.1]"))
        }
        _ => Ok(packet_type),
    }
}

fn check_flags(packet_type: PacketType, flags: u8) -> Result<(), DecodeError> {
    if packet_type != PacketType::Publish {
        return match flags == packet_type.flags() {
            true => Ok(()),
            false => Err(DecodeError::malformed("reserved flags of the first byte are set [MQTT-2.1.3-1]")),
        };
    }
    match (QoS::from_bits(flags >> 1 & 0b11), flags & 0b1000 != 0) {
        (None, _) => Err(DecodeError::malformed("QoS is 3 [MQTT-3.3.1-4]")),
        (Some(QoS::AtMostOnce), true) => Err(DecodeError::malformed("DUP is set on QoS 0 [MQTT-3.3.1-2]")),
        _ => Ok(()),
    }
}
