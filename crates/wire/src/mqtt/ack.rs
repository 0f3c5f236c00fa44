//! PUBACK, PUBREC, PUBREL, PUBCOMP, DISCONNECT and AUTH: packets of a reason code and properties.

use std::fmt;

use super::error::{DecodeError, EncodeError};
use super::packet_type::PacketType;
use super::properties::Properties;
use super::property::scope_of;
use super::reader::Reader;
use super::version::ProtocolVersion;
use super::{ReasonCode, writer};

/// PUBACK, PUBREC, PUBREL or PUBCOMP [MQTT5 3.4 to 3.7].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Identifier of the acknowledged message.
    pub packet_id: u16,
    /// MQTT 5 only; success otherwise.
    pub reason: ReasonCode,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
}

impl Ack<'_> {
    /// A successful ack without properties.
    pub const fn success(packet_id: u16) -> Self {
        Self { packet_id, reason: ReasonCode::SUCCESS, properties: Properties::NONE }
    }
}

/// DISCONNECT [MQTT5 3.14].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disconnect<'a> {
    /// MQTT 5 only; 0x00 otherwise.
    pub reason: ReasonCode,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
}

impl fmt::Display for Disconnect<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DISCONNECT {}", self.reason)?;
        self.properties.reason_string().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

impl Disconnect<'_> {
    /// The ordinary end of a connection: the server discards the will.
    pub const NORMAL: Self = Self { reason: ReasonCode::SUCCESS, properties: Properties::NONE };
}

/// AUTH [MQTT5 3.15].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Auth<'a> {
    /// Success, continue or re-authenticate.
    pub reason: ReasonCode,
    /// Method and data.
    pub properties: Properties<'a>,
}

pub(super) fn decode<'a>(
    packet_type: PacketType,
    body: &mut Reader<'a>,
    v5: bool,
) -> Result<Ack<'a>, DecodeError> {
    let packet_id = body.packet_id()?;
    let (reason, properties) = reason_and_properties(packet_type, body, v5)?;
    Ok(Ack { packet_id, reason, properties })
}

pub(super) fn decode_disconnect<'a>(body: &mut Reader<'a>, v5: bool) -> Result<Disconnect<'a>, DecodeError> {
    let (reason, properties) = reason_and_properties(PacketType::Disconnect, body, v5)?;
    Ok(Disconnect { reason, properties })
}

pub(super) fn decode_auth<'a>(body: &mut Reader<'a>) -> Result<Auth<'a>, DecodeError> {
    let offset = body.offset();
    let (reason, properties) = reason_and_properties(PacketType::Auth, body, true)?;
    let auth = Auth { reason, properties };
    check_auth(&auth).map_err(|error| error.at(offset))?;
    Ok(auth)
}

/// Only a plain success may lack an authentication method; it may have no body at all [MQTT5 3.15.2.1, 3.15.2.2.2].
fn check_auth(auth: &Auth<'_>) -> Result<(), DecodeError> {
    let plain = auth.reason == ReasonCode::SUCCESS && auth.properties.is_empty();
    if plain || auth.properties.authentication_method().is_some() {
        return Ok(());
    }
    Err(DecodeError::protocol("an AUTH without Authentication Method [MQTT5 3.15.2.2.2]"))
}

/// The sender may leave out both at the end of the packet [MQTT5 3.4.2.1].
fn reason_and_properties<'a>(
    packet_type: PacketType,
    body: &mut Reader<'a>,
    v5: bool,
) -> Result<(ReasonCode, Properties<'a>), DecodeError> {
    if !v5 || body.is_at_end() {
        return Ok((ReasonCode::SUCCESS, Properties::NONE));
    }
    let offset = body.offset();
    let reason = ReasonCode(body.u8()?);
    check_reason(packet_type, reason).map_err(|error| error.at(offset))?;
    if body.is_at_end() {
        return Ok((reason, Properties::NONE));
    }
    Ok((reason, Properties::read(body, scope_of(packet_type))?))
}

fn check_reason(packet_type: PacketType, reason: ReasonCode) -> Result<(), DecodeError> {
    match reason.belongs_to(packet_type) {
        true => Ok(()),
        false => Err(DecodeError::protocol("the reason code does not belong to this packet [MQTT5 2.4]")),
    }
}

pub(super) fn encode(
    packet_type: PacketType,
    ack: &Ack<'_>,
    v5: bool,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    writer::packet(packet_type.first_byte(), out, |out| {
        writer::packet_id(ack.packet_id, out)?;
        if v5 {
            write_tail(packet_type, ack.reason, ack.properties, out)?;
        }
        Ok(())
    })
}

pub(super) fn encode_disconnect(
    disconnect: &Disconnect<'_>,
    v5: bool,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    writer::packet(PacketType::Disconnect.first_byte(), out, |out| {
        if v5 {
            write_tail(PacketType::Disconnect, disconnect.reason, disconnect.properties, out)?;
        }
        Ok(())
    })
}

pub(super) fn encode_auth(auth: &Auth<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check_auth(auth)?;
    writer::packet(PacketType::Auth.first_byte(), out, |out| {
        write_tail(PacketType::Auth, auth.reason, auth.properties, out)
    })
}

/// Writes the shortest form: no byte for a success without properties, one byte for a reason without properties.
fn write_tail(
    packet_type: PacketType,
    reason: ReasonCode,
    properties: Properties<'_>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    check_reason(packet_type, reason)?;
    if properties.is_empty() && reason == ReasonCode::SUCCESS {
        return Ok(());
    }
    out.push(reason.0);
    if properties.is_empty() {
        return Ok(());
    }
    properties.write(scope_of(packet_type), out)
}

/// Appends a successful PUBACK: the same four bytes in all versions. `packet_id` comes from a received packet, so it is
/// not zero.
pub fn encode_puback(packet_id: u16, _version: ProtocolVersion, out: &mut Vec<u8>) {
    debug_assert_ne!(packet_id, 0, "BUG: no received packet has the identifier zero");
    let [high, low] = packet_id.to_be_bytes();
    out.extend_from_slice(&[PacketType::PubAck.first_byte(), 2, high, low]);
}
