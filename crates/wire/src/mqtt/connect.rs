//! CONNECT and CONNACK [MQTT5 3.1, 3.2].

use super::error::{DecodeError, EncodeError};
use super::packet_type::PacketType;
use super::properties::Properties;
use super::property::{WILL, scope_of};
use super::qos::QoS;
use super::reader::Reader;
use super::version::ProtocolVersion;
use super::{ConnectReturnCode, ReasonCode, is_valid_name, writer};

/// CONNECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connect<'a> {
    /// The version of this and all later packets of the connection.
    pub version: ProtocolVersion,
    /// The client is a bridge of another broker: the highest bit of the protocol level is set, as mosquitto does before MQTT 5. It
    /// does not want its own messages back, and wants retain flags as they were published.
    pub is_bridge: bool,
    /// Clean Session in MQTT 3.1 and 3.1.1, Clean Start in MQTT 5.
    pub clean_start: bool,
    /// Longest silence in seconds; 0 for no bound.
    pub keep_alive_s: u16,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// The client identifier. If it is empty and the session is clean, the server chooses one [MQTT-3.1.3-7 and -8 of
    /// 3.1.1]. MQTT 3.1 allows 1 to 23 characters; longer identifiers are common.
    pub client_id: &'a str,
    /// The message that the server publishes when the connection ends without DISCONNECT.
    pub will: Option<Will<'a>>,
    /// ThingsBoard devices send their access token here.
    pub username: Option<&'a str>,
    /// Bytes, not text.
    pub password: Option<&'a [u8]>,
}

/// The will of a CONNECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Will<'a> {
    /// Quality of service of the will.
    pub qos: QoS,
    /// Asks the server to keep the message.
    pub retain: bool,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// Topic of the will.
    pub topic: &'a str,
    /// Payload of the will.
    pub payload: &'a [u8],
}

/// CONNACK.
///
/// MQTT 3.1 and 3.1.1 share one layout, but MQTT 3.1 has no flag `session_present`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnAck<'a> {
    /// The server continues a former session.
    pub session_present: bool,
    /// A reason code in MQTT 5, a return code in MQTT 3.1.1 ([`super::ConnectReturnCode`]).
    pub code: u8,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
}

impl<'a> Connect<'a> {
    /// A CONNECT without user, will and keep-alive that begins a new session.
    pub const fn new(version: ProtocolVersion, client_id: &'a str) -> Self {
        Self {
            version,
            is_bridge: false,
            clean_start: true,
            keep_alive_s: 0,
            properties: Properties::NONE,
            client_id,
            will: None,
            username: None,
            password: None,
        }
    }
}

impl ConnAck<'_> {
    /// Whether the server accepted the connection.
    pub const fn is_accepted(&self) -> bool {
        self.code == ConnectReturnCode::ACCEPTED
    }

    /// Code and reason of a refusal as text. The code has another meaning before MQTT 5.
    pub fn refusal(&self, version: ProtocolVersion) -> String {
        let code = match (version, ConnectReturnCode::name(self.code)) {
            (ProtocolVersion::V5, _) => ReasonCode(self.code).to_string(),
            (_, Some(name)) => format!("{} ({name})", self.code),
            (_, None) => self.code.to_string(),
        };
        let why = self.properties.reason_string().map(|why| format!(": {why}")).unwrap_or_default();
        format!("CONNACK {code}{why}")
    }
}

/// The bit of the protocol level of a bridge before MQTT 5.
const BRIDGE: u8 = 0x80;
const USERNAME: u8 = 0x80;
const PASSWORD: u8 = 0x40;
const WILL_RETAIN: u8 = 0x20;
const WILL_QOS: u8 = 0x18;
const WILL_FLAG: u8 = 0x04;
const CLEAN_START: u8 = 0x02;
const RESERVED: u8 = 0x01;

pub(super) fn decode_connect<'a>(body: &mut Reader<'a>) -> Result<Connect<'a>, DecodeError> {
    let (version, is_bridge) = decode_version(body)?;
    let v5 = version == ProtocolVersion::V5;
    let flags_offset = body.offset();
    let flags = body.u8()?;
    check_flags(flags, version).map_err(|error| error.at(flags_offset))?;
    let keep_alive_s = body.u16()?;
    let properties =
        if v5 { Properties::read(body, scope_of(PacketType::Connect))? } else { Properties::NONE };
    let client_id = body.string()?;
    let will = if flags & WILL_FLAG != 0 { Some(decode_will(flags, body, v5)?) } else { None };
    // In MQTT 3.1 the packet may end before fields that its flags announce [MQTT31 3.1, "User name and password"].
    let follows = |body: &Reader<'_>| version != ProtocolVersion::V31 || !body.is_at_end();
    let username = if flags & USERNAME != 0 && follows(body) { Some(body.string()?) } else { None };
    let password = if flags & PASSWORD != 0 && follows(body) { Some(body.binary()?) } else { None };
    let clean_start = flags & CLEAN_START != 0;
    Ok(Connect {
        version,
        is_bridge,
        clean_start,
        keep_alive_s,
        properties,
        client_id,
        will,
        username,
        password,
    })
}

fn decode_version(body: &mut Reader<'_>) -> Result<(ProtocolVersion, bool), DecodeError> {
    let offset = body.offset();
    // A name that is not text is malformed, and so is a missing level: they get no CONNACK.
    let name = body.string()?;
    let level = body.u8()?;
    if name != "MQTT" && name != "MQIsdp" {
        let cause = "the protocol name is not MQTT [MQTT-3.1.2-1]";
        return Err(DecodeError::new(ReasonCode::UNSUPPORTED_PROTOCOL_VERSION, cause).at(offset));
    }
    let is_bridge = level & BRIDGE != 0;
    match (name, level) {
        ("MQIsdp", 3 | 0x83) => Ok((ProtocolVersion::V31, is_bridge)),
        ("MQTT", 4 | 0x84) => Ok((ProtocolVersion::V311, is_bridge)),
        ("MQTT", 5) => Ok((ProtocolVersion::V5, false)),
        _ => {
            let cause = "the protocol level is neither 4 nor 5, and not 3 of MQIsdp [MQTT-3.1.2-2]";
            Err(DecodeError::new(ReasonCode::UNSUPPORTED_PROTOCOL_VERSION, cause).at(offset + 2 + name.len()))
        }
    }
}

fn check_flags(flags: u8, version: ProtocolVersion) -> Result<(), DecodeError> {
    // MQTT 3.1 does not use these flags [MQTT31 3.1].
    let strict = version != ProtocolVersion::V31;
    if strict && flags & RESERVED != 0 {
        return Err(DecodeError::malformed("the reserved connect flag is set [MQTT-3.1.2-3]"));
    }
    if strict && flags & WILL_FLAG == 0 && flags & (WILL_QOS | WILL_RETAIN) != 0 {
        return Err(DecodeError::malformed(
            "will QoS or retain without a will [MQTT-3.1.2-11], [MQTT-3.1.2-13]",
        ));
    }
    if flags & (WILL_FLAG | WILL_QOS) == WILL_FLAG | WILL_QOS || strict && flags & WILL_QOS == WILL_QOS {
        return Err(DecodeError::malformed("will QoS is 3 [MQTT-3.1.2-12]"));
    }
    if version != ProtocolVersion::V5 && flags & PASSWORD != 0 && flags & USERNAME == 0 {
        return Err(DecodeError::malformed("a password without a user name [MQTT-3.1.2-22 of 3.1.1]"));
    }
    Ok(())
}

fn decode_will<'a>(flags: u8, body: &mut Reader<'a>, v5: bool) -> Result<Will<'a>, DecodeError> {
    let qos = QoS::from_bits((flags & WILL_QOS) >> 3)
        .ok_or(DecodeError::malformed("will QoS is 3 [MQTT-3.1.2-12]"))?;
    let properties = if v5 { Properties::read(body, WILL)? } else { Properties::NONE };
    let offset = body.offset();
    let topic = body.string()?;
    check_will_topic(topic).map_err(|error| error.at(offset))?;
    let payload = body.binary()?;
    Ok(Will { qos, retain: flags & WILL_RETAIN != 0, properties, topic, payload })
}

fn check_will_topic(topic: &str) -> Result<(), DecodeError> {
    if is_valid_name(topic) {
        return Ok(());
    }
    let cause = "the will topic is empty or holds a wildcard [MQTT-3.3.2-2], [MQTT-4.7.3-1]";
    Err(DecodeError::new(ReasonCode::TOPIC_NAME_INVALID, cause))
}

pub(super) fn encode_connect(connect: &Connect<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let v5 = connect.version == ProtocolVersion::V5;
    let flags = flags_of(connect);
    check_flags(flags, connect.version)?;
    writer::packet(PacketType::Connect.first_byte(), out, |out| {
        let (name, level) = match connect.version {
            ProtocolVersion::V31 => ("MQIsdp", 3),
            ProtocolVersion::V311 => ("MQTT", 4),
            ProtocolVersion::V5 => ("MQTT", 5),
        };
        let level = if connect.is_bridge && !v5 { level | BRIDGE } else { level };
        writer::string("the protocol name", name, out)?;
        out.extend_from_slice(&[level, flags]);
        out.extend_from_slice(&connect.keep_alive_s.to_be_bytes());
        if v5 {
            connect.properties.write(scope_of(PacketType::Connect), out)?;
        }
        writer::string("the client identifier", connect.client_id, out)?;
        if let Some(will) = &connect.will {
            encode_will(will, v5, out)?;
        }
        if let Some(username) = connect.username {
            writer::string("the user name", username, out)?;
        }
        if let Some(password) = connect.password {
            writer::binary("the password", password, out)?;
        }
        Ok(())
    })
}

fn encode_will(will: &Will<'_>, v5: bool, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check_will_topic(will.topic)?;
    if v5 {
        will.properties.write(WILL, out)?;
    }
    writer::string("the will topic", will.topic, out)?;
    writer::binary("the will payload", will.payload, out)
}

fn flags_of(connect: &Connect<'_>) -> u8 {
    let when = |condition: bool, flag: u8| if condition { flag } else { 0 };
    let will =
        connect.will.map_or(0, |will| WILL_FLAG | (will.qos as u8) << 3 | when(will.retain, WILL_RETAIN));
    when(connect.username.is_some(), USERNAME)
        | when(connect.password.is_some(), PASSWORD)
        | when(connect.clean_start, CLEAN_START)
        | will
}

pub(super) fn decode_connack<'a>(body: &mut Reader<'a>, v5: bool) -> Result<ConnAck<'a>, DecodeError> {
    let offset = body.offset();
    let flags = body.u8()?;
    if flags > 1 {
        return Err(DecodeError::malformed("reserved CONNACK flags are set [MQTT-3.2.2-1]").at(offset));
    }
    let session_present = flags == 1;
    let code = body.u8()?;
    check_connack(session_present, code, v5).map_err(|error| error.at(offset + 1))?;
    let properties =
        if v5 { Properties::read(body, scope_of(PacketType::ConnAck))? } else { Properties::NONE };
    Ok(ConnAck { session_present, code, properties })
}

fn check_connack(session_present: bool, code: u8, v5: bool) -> Result<(), DecodeError> {
    let known = if v5 { ReasonCode(code).belongs_to(PacketType::ConnAck) } else { code <= 5 };
    if !known {
        let cause = "the code does not belong to CONNACK [MQTT5 3.2.2.2], [MQTT311 3.2.2.3]";
        return Err(DecodeError::protocol(cause));
    }
    if session_present && code != 0 {
        let cause = "a refusal with a session present [MQTT-3.2.2-6], [MQTT-3.2.2-4 of 3.1.1]";
        return Err(DecodeError::protocol(cause));
    }
    Ok(())
}

pub(super) fn encode_connack(connack: &ConnAck<'_>, v5: bool, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check_connack(connack.session_present, connack.code, v5)?;
    writer::packet(PacketType::ConnAck.first_byte(), out, |out| {
        out.extend_from_slice(&[u8::from(connack.session_present), connack.code]);
        if v5 {
            connack.properties.write(scope_of(PacketType::ConnAck), out)?;
        }
        Ok(())
    })
}
