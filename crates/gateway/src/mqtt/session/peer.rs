//! The terms of a peer, and answers that fit them.

use wire::mqtt::{
    Ack, Connect, Disconnect, Packet, PacketType, Properties, PropertiesBuilder, Property, PropertyId,
    ProtocolVersion, ReasonCode, encode, encode_puback,
};

use super::super::acks::{AckKind, Answer, PendingAck};
use super::super::limits;

/// Bytes of a PUBACK without reason and properties.
const PUBACK_BYTES: usize = 4;

/// The terms of a peer: its version, and the answers that it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) version: ProtocolVersion,
    /// Whether acks may carry reason strings [MQTT-3.1.2-29].
    explain: bool,
    /// Its Maximum Packet Size.
    pub(super) packet_bytes_max: usize,
    /// Its Topic Alias Maximum.
    pub(super) topic_alias_max: u16,
    /// It is a bridge that says so in its CONNECT.
    pub(super) is_bridge: bool,
}

impl Peer {
    /// The terms of a CONNECT.
    pub(crate) fn of(connect: &Connect<'_>) -> Self {
        let packet_bytes_max = connect.properties.maximum_packet_size();
        Self {
            version: connect.version,
            explain: connect.version == ProtocolVersion::V5
                && connect.properties.request_problem_information(),
            packet_bytes_max: packet_bytes_max.map_or(usize::MAX, |most| most as usize),
            topic_alias_max: connect.properties.topic_alias_maximum(),
            is_bridge: connect.is_bridge,
        }
    }

    /// Appends the first form that is not too large for the peer. If all are too large, the session sends nothing and continues
    /// as if it had [MQTT-3.1.2-25].
    pub(crate) fn write(&self, forms: &[Packet<'_>], out: &mut Vec<u8>) {
        let start = out.len();
        for packet in forms {
            match encode(packet, self.version, out) {
                Ok(()) if out.len() - start <= self.packet_bytes_max => return,
                Ok(()) => out.truncate(start),
                Err(error) => tracing::error!(%error, ?packet, "BUG: an answer has no encoding"),
            }
        }
    }

    /// Appends a packet. It has a reason string if the peer accepts one and it fits [MQTT-3.4.2-2].
    pub(crate) fn write_explained<'a>(
        &self,
        text: &str,
        packet: impl Fn(Properties<'a>) -> Packet<'a>,
        reason: &'a mut PropertiesBuilder,
        out: &mut Vec<u8>,
    ) {
        if !self.explain || out.len() > limits::UNSENT_BYTES_MAX {
            return self.write(&[packet(Properties::NONE)], out);
        }
        *reason = reason_string(text);
        self.write(&[packet(reason.as_properties()), packet(Properties::NONE)], out);
    }

    /// Writes the ack of a message.
    pub(crate) fn write_ack(&self, ack: &PendingAck, out: &mut Vec<u8>) {
        let packet_id = ack.packet_id;
        let yes = Ack::success(packet_id);
        match (ack.kind, &ack.answer) {
            (AckKind::None | AckKind::Part, _) => {}
            (AckKind::PubAck, Answer::Accepted | Answer::AcceptedQos2(_)) => {
                if self.packet_bytes_max >= PUBACK_BYTES {
                    encode_puback(packet_id, self.version, out);
                }
            }
            (AckKind::PubRec, Answer::Accepted | Answer::AcceptedQos2(_)) => {
                self.write(&[Packet::PubRec(yes)], out)
            }
            (kind, Answer::Refused(refusal)) => {
                let packet = |properties| {
                    let no = Ack { packet_id, reason: refusal.reason, properties };
                    if kind == AckKind::PubAck { Packet::PubAck(no) } else { Packet::PubRec(no) }
                };
                self.write_explained(&refusal.text, packet, &mut PropertiesBuilder::new(), out);
            }
        }
    }

    /// Writes DISCONNECT to an MQTT 5 peer [MQTT5 3.14]. It may always have a reason string, but not in a packet that is too
    /// large [MQTT-3.14.2-3].
    pub(crate) fn write_disconnect(&self, reason: ReasonCode, cause: &str, out: &mut Vec<u8>) {
        if self.version != ProtocolVersion::V5 {
            return;
        }
        // A fault in a forbidden second CONNECT may have a code that only CONNACK allows.
        let belongs = reason.belongs_to(PacketType::Disconnect);
        let reason = if belongs { reason } else { ReasonCode::PROTOCOL_ERROR };
        let text = reason_string(cause);
        let packet = |properties| Packet::Disconnect(Disconnect { reason, properties });
        self.write(&[packet(text.as_properties()), packet(Properties::NONE)], out);
    }
}

/// A reason string of bounded length.
pub(crate) fn reason_string(text: &str) -> PropertiesBuilder {
    const REASON_BYTES_MAX: usize = 400;
    let end = (0..=REASON_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    // A string of the protocol must not contain U+0000 [MQTT-1.5.4-2].
    let text = text[..end].replace('\0', "\u{fffd}");
    let mut properties = PropertiesBuilder::new();
    properties
        .push(Property::Text(PropertyId::ReasonString, &text))
        .expect("BUG: at most 1,200 bytes fit into a string of the protocol");
    properties
}

#[cfg(test)]
mod tests {
    use wire::mqtt::{SubAck, decode};

    use super::super::super::acks::{ConnectionKey, Refusal};
    use super::*;

    fn peer(explain: bool, packet_bytes_max: usize) -> Peer {
        Peer { version: ProtocolVersion::V5, explain, packet_bytes_max, topic_alias_max: 0, is_bridge: false }
    }

    fn refusal(peer: Peer, already_unsent: usize) -> Option<String> {
        let refusal = Refusal { reason: ReasonCode::PAYLOAD_FORMAT_INVALID, text: "twelve bytes".into() };
        let connection = ConnectionKey { slot: 0, generation: 0 };
        let answer = Answer::Refused(Box::new(refusal));
        let mut out = vec![0; already_unsent];
        peer.write_ack(&PendingAck::new(connection, 7, AckKind::PubAck, answer), &mut out);
        match decode(&out[already_unsent..], Some(ProtocolVersion::V5), 1_000).unwrap().unwrap().packet {
            Packet::PubAck(ack) => {
                assert_eq!((ack.packet_id, ack.reason), (7, ReasonCode::PAYLOAD_FORMAT_INVALID));
                ack.properties.reason_string().map(str::to_owned)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_reason_string_is_sent_if_requested_and_within_the_packet_size() {
        // Header 2, identifier 2, code 1, length of the properties 1, property 1 + 2 + 12.
        let text = Some("twelve bytes".to_owned());
        assert_eq!(refusal(peer(true, 21), 0), text);
        assert_eq!(refusal(peer(true, 20), 0), None);
        assert_eq!(refusal(peer(false, 1_000), 0), None);
        assert_eq!(refusal(peer(true, 1_000), limits::UNSENT_BYTES_MAX), text);
        assert_eq!(refusal(peer(true, 1_000), limits::UNSENT_BYTES_MAX + 1), None);
    }

    #[test]
    fn a_packet_that_is_too_large_in_every_form_is_not_sent() {
        let packet = SubAck { packet_id: 1, properties: Properties::NONE, codes: &[0x83; 200] };
        let mut out = b"before".to_vec();
        peer(true, 150).write(&[Packet::SubAck(packet)], &mut out);
        assert_eq!(out, b"before");
    }

    #[test]
    fn a_disconnect_has_a_reason_string_where_it_fits() {
        let length = |packet_bytes_max| {
            let mut out = Vec::new();
            peer(false, packet_bytes_max).write_disconnect(ReasonCode::SERVER_BUSY, "a cause", &mut out);
            out.len()
        };
        assert_eq!((length(14), length(13)), (14, 3));
    }
}
