//! Additions to `wire::mqtt` for a load generator: PUBLISH from a template in which only digits change, and a fast path
//! for the most frequent packet, the plain PUBACK.

use std::str::FromStr;

use wire::mqtt::{
    Ack, Connect, DecodeError, Packet, Properties, ProtocolVersion, QoS, decode, encode, encode_publish,
};

use crate::limits::PACKET_BYTES_MAX;
use crate::payload::Template;

/// The topic devices publish to.
pub const TELEMETRY_TOPIC: &str = "v1/devices/me/telemetry";

/// The protocol version of the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Protocol {
    /// MQTT 3.1.1.
    #[serde(rename = "3.1.1")]
    V311,
    /// MQTT 5.
    #[serde(rename = "5")]
    V5,
}

impl Protocol {
    fn version(self) -> ProtocolVersion {
        match self {
            Self::V311 => ProtocolVersion::V311,
            Self::V5 => ProtocolVersion::V5,
        }
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V311 => "3.1.1",
            Self::V5 => "5",
        })
    }
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

/// Appends CONNECT with a clean session and the access token as username, as ThingsBoard devices do.
pub(crate) fn connect(
    out: &mut Vec<u8>,
    protocol: Protocol,
    client_id: &str,
    token: &str,
    keep_alive_s: u16,
) {
    let connect = Connect {
        version: protocol.version(),
        clean_start: true,
        keep_alive_s,
        properties: Properties::NONE,
        client_id,
        will: None,
        username: Some(token),
        password: None,
    };
    append(out, protocol, &Packet::Connect(connect));
}

/// Appends PINGREQ.
pub(crate) fn ping(out: &mut Vec<u8>) {
    append(out, Protocol::V311, &Packet::PingReq);
}

/// Appends DISCONNECT; without a reason its form is the same in both versions.
pub(crate) fn disconnect(out: &mut Vec<u8>) {
    use wire::mqtt::{Disconnect, ReasonCode};
    let packet = Disconnect { reason: ReasonCode::SUCCESS, properties: Properties::NONE };
    append(out, Protocol::V311, &Packet::Disconnect(packet));
}

fn append(out: &mut Vec<u8>, protocol: Protocol, packet: &Packet<'_>) {
    encode(packet, protocol.version(), out).expect("BUG: tokens and client ids are checked to be short");
}

/// Appends PUBREL, the second half of a QoS 2 message.
pub(crate) fn release(out: &mut Vec<u8>, packet_id: u16) {
    out.extend_from_slice(&[0x62, 2]);
    out.extend_from_slice(&packet_id.to_be_bytes());
}

/// A complete PUBLISH packet with the offsets of the parts that change.
#[derive(Debug, Clone)]
pub(crate) struct PublishTemplate {
    packet: Vec<u8>,
    /// `None` at QoS 0.
    packet_id: Option<usize>,
    payload_at: usize,
    payload: Template,
}

impl PublishTemplate {
    pub(crate) fn new(protocol: Protocol, qos: QoS, payload: Template) -> Self {
        let mut packet = Vec::new();
        encode_publish(TELEMETRY_TOPIC, qos, 1, payload.bytes(), protocol.version(), &mut packet)
            .expect("BUG: topic and payload are within MQTT's limits");
        let payload_at = packet.len() - payload.size_bytes();
        let properties = usize::from(protocol == Protocol::V5);
        let packet_id = (qos != QoS::AtMostOnce).then(|| payload_at - properties - 2);
        Self { packet_id, payload_at, packet, payload }
    }

    /// Appends one message.
    pub(crate) fn render(&self, out: &mut Vec<u8>, packet_id: u16, ts_ms: u64, device: u32, sequence: u64) {
        let start = out.len();
        out.extend_from_slice(&self.packet);
        let packet = &mut out[start..];
        if let Some(at) = self.packet_id {
            packet[at..at + 2].copy_from_slice(&packet_id.to_be_bytes());
        }
        self.payload.patch(&mut packet[self.payload_at..], ts_ms, device, sequence);
    }
}

/// The next packet in `input` and its length; `None` if more bytes are needed.
pub(crate) fn next_packet(
    input: &[u8],
    protocol: Protocol,
) -> Result<Option<(Packet<'_>, usize)>, DecodeError> {
    if let [0x40, 2, high, low, ..] = *input {
        return Ok(Some((Packet::PubAck(Ack::success(u16::from_be_bytes([high, low]))), 4)));
    }
    let decoded = decode(input, Some(protocol.version()), PACKET_BYTES_MAX)?;
    Ok(decoded.map(|decoded| (decoded.packet, decoded.consumed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_template_renders_is_the_message_it_should_be() {
        let versions = [Protocol::V311, Protocol::V5];
        let qos = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];
        for (protocol, qos) in versions.into_iter().flat_map(|version| qos.map(|qos| (version, qos))) {
            let template = PublishTemplate::new(protocol, qos, Template::new(300));
            let mut out = Vec::new();
            template.render(&mut out, 0x1234, 1_790_000_000_000, 5, 6);
            let decoded = decode(&out, Some(protocol.version()), usize::MAX).unwrap().unwrap();
            let Packet::Publish(publish) = decoded.packet else { panic!("{decoded:?}") };
            assert_eq!((publish.topic, publish.qos), (TELEMETRY_TOPIC, qos));
            let packet_id = (qos != QoS::AtMostOnce).then_some(0x1234);
            assert_eq!((publish.packet_id, decoded.consumed), (packet_id, out.len()));
            let json: serde_json::Value = serde_json::from_slice(publish.payload).unwrap();
            assert_eq!(json["ts"], 1_790_000_000_000_u64);
        }
    }

    #[test]
    fn release_is_what_the_codec_reads() {
        let mut out = Vec::new();
        release(&mut out, 0x0102);
        for protocol in [Protocol::V311, Protocol::V5] {
            let decoded = decode(&out, Some(protocol.version()), usize::MAX).unwrap().unwrap();
            assert_eq!(decoded.packet, Packet::PubRel(Ack::success(0x0102)));
        }
    }

    #[test]
    fn the_short_way_for_acks_agrees_with_the_codec() {
        for protocol in [Protocol::V311, Protocol::V5] {
            let bytes = b"\x40\x02\x01\x02\x40";
            let decoded = decode(bytes, Some(protocol.version()), PACKET_BYTES_MAX).unwrap().unwrap();
            assert_eq!(next_packet(bytes, protocol).unwrap().unwrap(), (decoded.packet, decoded.consumed));
            for cut in 0..4 {
                assert_eq!(next_packet(&bytes[..cut], protocol), Ok(None));
            }
        }
        let refused = next_packet(b"\x40\x03\0\x01\x97", Protocol::V5).unwrap().unwrap().0;
        assert!(matches!(refused, Packet::PubAck(ack) if ack.reason.0 == 0x97), "{refused:?}");
    }
}
