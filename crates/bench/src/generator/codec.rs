//! The few MQTT packets a load generator needs, encoded and decoded without allocation on the hot path: PUBLISH from
//! a template, PUBACK from the read buffer.

use std::str::FromStr;

use crate::limits::PACKET_BYTES_MAX;
use crate::payload::Template;

/// The topic devices publish to.
pub(crate) const TELEMETRY_TOPIC: &str = "v1/devices/me/telemetry";

const CONNECT: u8 = 0x10;
const PUBLISH_QOS1: u8 = 0x32;
const PINGREQ: [u8; 2] = [0xC0, 0];
const DISCONNECT: [u8; 2] = [0xE0, 0];
const CLEAN_START_WITH_USERNAME: u8 = 0x82;

/// Protocol version the devices speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Protocol {
    /// MQTT 3.1.1.
    #[serde(rename = "3.1.1")]
    V311,
    /// MQTT 5.
    #[serde(rename = "5")]
    V5,
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "3.1.1" | "311" | "4" => Ok(Self::V311),
            "5" | "5.0" => Ok(Self::V5),
            other => Err(format!("`{other}` is no MQTT version we speak; use 3.1.1 or 5")),
        }
    }
}

/// A packet a server sends to a publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inbound {
    /// Answer to CONNECT; `reason` 0 is success.
    ConnAck { reason: u8, receive_max: u16 },
    /// Answer to PUBLISH; a `reason` of 0x80 and above is a refusal.
    PubAck { packet_id: u16, reason: u8 },
    /// Answer to PINGREQ.
    PingResp,
    /// The server ends the connection (MQTT 5).
    Disconnect { reason: u8 },
}

/// Why what a server sent is no packet for a publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadPacket {
    /// The remaining length has more than four bytes or exceeds our limit.
    #[error("packet longer than {PACKET_BYTES_MAX} bytes")]
    Length,
    /// Shorter than its type demands, or with a field that is not allowed.
    #[error("malformed packet of type {0}")]
    Malformed(u8),
    /// A type no server sends to a publisher.
    #[error("unexpected packet of type {0}")]
    Unexpected(u8),
}

/// Appends CONNECT with a clean session and the access token as username, as ThingsBoard devices do.
pub(crate) fn connect(
    out: &mut Vec<u8>,
    protocol: Protocol,
    client_id: &str,
    token: &str,
    keep_alive_s: u16,
) {
    let properties = usize::from(protocol == Protocol::V5);
    out.push(CONNECT);
    push_length(out, 10 + properties + 2 + client_id.len() + 2 + token.len());
    push_text(out, "MQTT");
    out.push(if protocol == Protocol::V5 { 5 } else { 4 });
    out.push(CLEAN_START_WITH_USERNAME);
    out.extend_from_slice(&keep_alive_s.to_be_bytes());
    out.extend(std::iter::repeat_n(0, properties));
    push_text(out, client_id);
    push_text(out, token);
}

/// Appends PINGREQ.
pub(crate) fn ping(out: &mut Vec<u8>) {
    out.extend_from_slice(&PINGREQ);
}

/// Appends DISCONNECT; the short form is valid in both versions.
pub(crate) fn disconnect(out: &mut Vec<u8>) {
    out.extend_from_slice(&DISCONNECT);
}

/// A complete PUBLISH packet, QoS 1, with the places that change.
#[derive(Debug, Clone)]
pub(crate) struct PublishTemplate {
    packet: Vec<u8>,
    packet_id: usize,
    payload_at: usize,
    payload: Template,
}

impl PublishTemplate {
    pub(crate) fn new(protocol: Protocol, payload: Template) -> Self {
        let properties = usize::from(protocol == Protocol::V5);
        let mut packet = vec![PUBLISH_QOS1];
        push_length(&mut packet, 2 + TELEMETRY_TOPIC.len() + 2 + properties + payload.len());
        push_text(&mut packet, TELEMETRY_TOPIC);
        let packet_id = packet.len();
        packet.extend_from_slice(&[0, 0]);
        packet.extend(std::iter::repeat_n(0, properties));
        let payload_at = packet.len();
        packet.extend_from_slice(payload.bytes());
        Self { packet, packet_id, payload_at, payload }
    }

    /// Appends one message.
    pub(crate) fn render(&self, out: &mut Vec<u8>, packet_id: u16, ts_ms: u64, device: u32, sequence: u64) {
        let start = out.len();
        out.extend_from_slice(&self.packet);
        let packet = &mut out[start..];
        packet[self.packet_id..self.packet_id + 2].copy_from_slice(&packet_id.to_be_bytes());
        self.payload.patch(&mut packet[self.payload_at..], ts_ms, device, sequence);
    }
}

/// The next packet in `input` and its length; `None` when more bytes are needed.
pub(crate) fn decode(input: &[u8], protocol: Protocol) -> Result<Option<(Inbound, usize)>, BadPacket> {
    // PUBACK without reason: nearly every packet a server sends us.
    if let [0x40, 2, high, low, ..] = *input {
        return Ok(Some((Inbound::PubAck { packet_id: u16::from_be_bytes([high, low]), reason: 0 }, 4)));
    }
    let Some((body_at, body_len)) = fixed_header(input)? else { return Ok(None) };
    let Some(body) = input.get(body_at..body_at + body_len) else { return Ok(None) };
    let inbound = body_of(input[0], body, protocol)?;
    Ok(Some((inbound, body_at + body_len)))
}

fn body_of(first: u8, body: &[u8], protocol: Protocol) -> Result<Inbound, BadPacket> {
    let kind = first >> 4;
    match (kind, body) {
        (2, [_, reason, properties @ ..]) => {
            let receive_max = if protocol == Protocol::V5 { receive_max(properties) } else { None };
            Ok(Inbound::ConnAck { reason: *reason, receive_max: receive_max.unwrap_or(u16::MAX) })
        }
        (4, [high, low, rest @ ..]) => Ok(Inbound::PubAck {
            packet_id: u16::from_be_bytes([*high, *low]),
            reason: rest.first().copied().unwrap_or(0),
        }),
        (13, []) => Ok(Inbound::PingResp),
        (14, rest) => Ok(Inbound::Disconnect { reason: rest.first().copied().unwrap_or(0) }),
        (2 | 4 | 13, _) => Err(BadPacket::Malformed(kind)),
        _ => Err(BadPacket::Unexpected(kind)),
    }
}

fn fixed_header(input: &[u8]) -> Result<Option<(usize, usize)>, BadPacket> {
    let mut length = 0_usize;
    for index in 0..4 {
        let Some(byte) = input.get(1 + index) else { return Ok(None) };
        length |= usize::from(byte & 0x7F) << (7 * index);
        if length > PACKET_BYTES_MAX {
            return Err(BadPacket::Length);
        }
        if byte & 0x80 == 0 {
            return Ok(Some((2 + index, length)));
        }
    }
    Err(BadPacket::Length)
}

fn push_length(out: &mut Vec<u8>, mut length: usize) {
    loop {
        let low = (length & 0x7F) as u8;
        length >>= 7;
        if length == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).expect("BUG: topics, tokens and client ids are short");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Receive Maximum (0x21) among the properties of a v5 CONNACK; MQTT 5 section 3.2.2.3 lists what may stand there.
fn receive_max(properties: &[u8]) -> Option<u16> {
    let prefix = properties.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let mut rest = properties.get(prefix..)?;
    while let [id, value @ ..] = rest {
        let text =
            |at: usize| Some(2 + usize::from(u16::from_be_bytes([*value.get(at)?, *value.get(at + 1)?])));
        let length = match id {
            0x21 => return Some(u16::from_be_bytes([*value.first()?, *value.get(1)?])),
            0x11 | 0x27 => 4,
            0x13 | 0x22 => 2,
            0x24 | 0x25 | 0x28 | 0x29 | 0x2A => 1,
            0x12 | 0x15 | 0x16 | 0x1A | 0x1C | 0x1F => text(0)?,
            0x26 => text(0)? + text(text(0)?)?,
            _ => return None,
        };
        rest = value.get(length..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_is_laid_out_as_the_standards_say() {
        let mut out = Vec::new();
        connect(&mut out, Protocol::V311, "id", "tok", 60);
        assert_eq!(out, b"\x10\x13\0\x04MQTT\x04\x82\0\x3c\0\x02id\0\x03tok");
        out.clear();
        connect(&mut out, Protocol::V5, "id", "tok", 60);
        assert_eq!(out, b"\x10\x14\0\x04MQTT\x05\x82\0\x3c\0\0\x02id\0\x03tok");
    }

    #[test]
    fn publish_carries_id_and_payload() {
        for (protocol, properties) in [(Protocol::V311, 0), (Protocol::V5, 1)] {
            let template = PublishTemplate::new(protocol, Template::new(300));
            let mut out = Vec::new();
            template.render(&mut out, 0x1234, 1_790_000_000_000, 5, 6);
            let body = 2 + TELEMETRY_TOPIC.len() + 2 + properties + 300;
            assert_eq!(out[..3], [0x32, (body % 128) as u8 | 0x80, (body / 128) as u8]);
            assert_eq!(out.len(), 3 + body);
            let id_at = 3 + 2 + TELEMETRY_TOPIC.len();
            assert_eq!(out[id_at..id_at + 2], [0x12, 0x34]);
            let json: serde_json::Value = serde_json::from_slice(&out[out.len() - 300..]).unwrap();
            assert_eq!(json["ts"], 1_790_000_000_000_u64);
        }
    }

    #[test]
    fn answers_are_decoded_and_half_ones_wait() {
        let cases: &[(&[u8], Protocol, Inbound)] = &[
            (b"\x20\x02\0\0", Protocol::V311, Inbound::ConnAck { reason: 0, receive_max: u16::MAX }),
            (b"\x20\x02\0\x05", Protocol::V311, Inbound::ConnAck { reason: 5, receive_max: u16::MAX }),
            (b"\x20\x06\0\0\x03\x21\0\x14", Protocol::V5, Inbound::ConnAck { reason: 0, receive_max: 20 }),
            (
                b"\x20\x10\0\0\x0d\x27\0\0\x10\0\x1f\0\x02hi\x21\0\x07",
                Protocol::V5,
                Inbound::ConnAck { reason: 0, receive_max: 7 },
            ),
            (b"\x40\x02\x01\x02", Protocol::V311, Inbound::PubAck { packet_id: 0x102, reason: 0 }),
            (b"\x40\x03\0\x01\x97", Protocol::V5, Inbound::PubAck { packet_id: 1, reason: 0x97 }),
            (b"\xd0\0", Protocol::V311, Inbound::PingResp),
            (b"\xe0\x01\x8b", Protocol::V5, Inbound::Disconnect { reason: 0x8b }),
        ];
        for (bytes, protocol, expected) in cases {
            assert_eq!(decode(bytes, *protocol), Ok(Some((*expected, bytes.len()))), "{bytes:x?}");
            for cut in 0..bytes.len() {
                assert_eq!(decode(&bytes[..cut], *protocol), Ok(None), "{bytes:x?} cut at {cut}");
            }
        }
    }

    #[test]
    fn what_no_server_sends_is_refused() {
        assert_eq!(decode(b"\x30\x02\0\0", Protocol::V311), Err(BadPacket::Unexpected(3)));
        assert_eq!(decode(b"\x40\x01\0", Protocol::V311), Err(BadPacket::Malformed(4)));
        assert_eq!(decode(b"\x40\xff\xff\xff\x7f", Protocol::V311), Err(BadPacket::Length));
        assert_eq!(decode(b"\x40\x80\x80\x80\x80\x01", Protocol::V311), Err(BadPacket::Length));
    }
}
