//! PUBLISH from a template in which only digits change: the generator encodes no message.

use load::payload::Template;
use wire::mqtt::{ProtocolVersion, QoS, encode_publish};

use super::version::Version;

/// The topic devices publish to.
pub const TELEMETRY_TOPIC: &str = "v1/devices/me/telemetry";

/// A complete PUBLISH packet with the offsets of the parts that change.
#[derive(Debug, Clone)]
pub(crate) struct PublishPacket {
    packet: Vec<u8>,
    /// `None` at QoS 0.
    packet_id: Option<usize>,
    payload_at: usize,
}

impl PublishPacket {
    /// A packet with this topic, which is a valid name, and a payload of this length.
    pub(crate) fn new(version: ProtocolVersion, qos: QoS, topic: &str, payload: &[u8]) -> Self {
        let mut packet = Vec::new();
        encode_publish(topic, qos, 1, payload, version, &mut packet)
            .expect("BUG: topic and payload are within MQTT's limits");
        let payload_at = packet.len() - payload.len();
        let properties = usize::from(version == ProtocolVersion::V5);
        let packet_id = (qos != QoS::AtMostOnce).then(|| payload_at - properties - 2);
        Self { packet, packet_id, payload_at }
    }

    /// Appends the packet with an identifier. Returns its payload, to be changed in place.
    pub(crate) fn render<'o>(&self, out: &'o mut Vec<u8>, packet_id: u16) -> &'o mut [u8] {
        let start = out.len();
        out.extend_from_slice(&self.packet);
        let packet = &mut out[start..];
        if let Some(at) = self.packet_id {
            packet[at..at + 2].copy_from_slice(&packet_id.to_be_bytes());
        }
        &mut packet[self.payload_at..]
    }
}

/// A message of telemetry.
#[derive(Debug, Clone)]
pub(crate) struct PublishTemplate {
    packet: PublishPacket,
    payload: Template,
}

impl PublishTemplate {
    pub(crate) fn new(version: Version, qos: QoS, payload: Template) -> Self {
        let packet = PublishPacket::new(version.on_the_wire(), qos, TELEMETRY_TOPIC, payload.bytes());
        Self { packet, payload }
    }

    /// Appends one message.
    pub(crate) fn render(&self, out: &mut Vec<u8>, packet_id: u16, ts_ms: u64, device: u32, sequence: u64) {
        self.payload.patch(self.packet.render(out, packet_id), ts_ms, device, sequence);
    }
}

#[cfg(test)]
mod tests {
    use wire::mqtt::{Packet, decode};

    use super::*;

    #[test]
    fn what_the_template_renders_is_the_message_it_should_be() {
        let versions = [Version::V311, Version::V5];
        let qos = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];
        for (version, qos) in versions.into_iter().flat_map(|version| qos.map(|qos| (version, qos))) {
            let template = PublishTemplate::new(version, qos, Template::new(300));
            let mut out = Vec::new();
            template.render(&mut out, 0x1234, 1_790_000_000_000, 5, 6);
            let decoded = decode(&out, Some(version.on_the_wire()), usize::MAX).unwrap().unwrap();
            let Packet::Publish(publish) = decoded.packet else { panic!("{decoded:?}") };
            assert_eq!((publish.topic, publish.qos), (TELEMETRY_TOPIC, qos));
            let packet_id = (qos != QoS::AtMostOnce).then_some(0x1234);
            assert_eq!((publish.packet_id, decoded.consumed), (packet_id, out.len()));
            let json: serde_json::Value = serde_json::from_slice(publish.payload).unwrap();
            assert_eq!(json["ts"], 1_790_000_000_000_u64);
        }
    }
}
