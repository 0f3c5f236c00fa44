//! PUBLISH [MQTT5 3.3].

use super::error::{DecodeError, EncodeError};
use super::packet_type::PacketType;
use super::properties::Properties;
use super::property::scope_of;
use super::qos::QoS;
use super::reader::Reader;
use super::version::ProtocolVersion;
use super::{ReasonCode, is_valid_name, writer};

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish<'a> {
    /// The sender may have sent this message before.
    pub dup: bool,
    /// Quality of service.
    pub qos: QoS,
    /// Asks the server to keep the message for later subscribers.
    pub retain: bool,
    /// The topic name. It is empty only in MQTT 5 with a topic alias.
    pub topic: &'a str,
    /// Present when `qos` is above 0, and only sent then [MQTT-2.2.1-2].
    pub packet_id: Option<u16>,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> Publish<'a> {
    /// A message without properties that is not retained. The sender chooses the identifier.
    pub const fn new(topic: &'a str, qos: QoS, payload: &'a [u8]) -> Self {
        Self { dup: false, qos, retain: false, topic, packet_id: None, properties: Properties::NONE, payload }
    }
}

pub(super) fn decode<'a>(flags: u8, body: &mut Reader<'a>, v5: bool) -> Result<Publish<'a>, DecodeError> {
    let qos = QoS::from_bits(flags >> 1 & 0b11).ok_or(DecodeError::malformed("QoS is 3 [MQTT-3.3.1-4]"))?;
    let dup = flags & 0b1000 != 0;
    let topic_offset = body.offset();
    let topic = body.string()?;
    let packet_id = if qos == QoS::AtMostOnce { None } else { Some(body.packet_id()?) };
    let properties =
        if v5 { Properties::read(body, scope_of(PacketType::Publish))? } else { Properties::NONE };
    check_topic(topic, v5, properties).map_err(|error| error.at(topic_offset))?;
    Ok(Publish { dup, qos, retain: flags & 1 != 0, topic, packet_id, properties, payload: body.rest() })
}

fn check_topic(topic: &str, v5: bool, properties: Properties<'_>) -> Result<(), DecodeError> {
    if topic.is_empty() && v5 {
        let aliased = properties.topic_alias().is_some();
        let missing = DecodeError::protocol("an empty topic without a topic alias [MQTT5 3.3.2.1]");
        return if aliased { Ok(()) } else { Err(missing) };
    }
    if is_valid_name(topic) {
        return Ok(());
    }
    let cause = "a topic name is empty or holds a wildcard [MQTT-3.3.2-2], [MQTT-4.7.3-1]";
    Err(DecodeError::new(ReasonCode::TOPIC_NAME_INVALID, cause))
}

pub(super) fn encode(publish: &Publish<'_>, v5: bool, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    encode_head(publish, v5, out)?;
    out.extend_from_slice(publish.payload);
    Ok(())
}

/// Appends a PUBLISH without its payload, which the caller sends after it.
///
/// # Errors
/// The message has no encoding. Then nothing is appended.
pub fn encode_publish_head(
    publish: &Publish<'_>,
    version: ProtocolVersion,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    encode_head(publish, version == ProtocolVersion::V5, out)
}

fn encode_head(publish: &Publish<'_>, v5: bool, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let written = write_head(publish, v5, out);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

fn write_head(publish: &Publish<'_>, v5: bool, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check_topic(publish.topic, v5, publish.properties)?;
    let with_id = publish.qos != QoS::AtMostOnce;
    if publish.dup && !with_id {
        return Err(EncodeError::Invalid { cause: "DUP is set on QoS 0 [MQTT-3.3.1-2]" });
    }
    let flags = u8::from(publish.dup) << 3 | (publish.qos as u8) << 1 | u8::from(publish.retain);
    let remaining = 2
        + publish.topic.len()
        + if with_id { 2 } else { 0 }
        + if v5 { publish.properties.written_bytes() } else { 0 }
        + publish.payload.len();
    writer::header(PacketType::Publish.first_byte() | flags, remaining, out)?;
    // A valid topic has no U+0000, so the encoder does not check its text again.
    writer::binary("the topic", publish.topic.as_bytes(), out)?;
    if with_id {
        writer::packet_id(publish.packet_id.unwrap_or(0), out)?;
    }
    if v5 {
        publish.properties.write(scope_of(PacketType::Publish), out)?;
    }
    Ok(())
}

/// Appends a PUBLISH without properties: the fast path of a load generator. QoS 0 has no packet identifier, so `packet_id`
/// is ignored.
pub fn encode_publish(
    topic: &str,
    qos: QoS,
    packet_id: u16,
    payload: &[u8],
    version: ProtocolVersion,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let packet_id = (qos != QoS::AtMostOnce).then_some(packet_id);
    encode(&Publish { packet_id, ..Publish::new(topic, qos, payload) }, version == ProtocolVersion::V5, out)
}
