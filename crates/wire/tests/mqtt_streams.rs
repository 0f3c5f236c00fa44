//! Packets in a row, cut anywhere or damaged.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use wire::mqtt::{Decoded, Packet, PacketType, Properties, PropertyId, ProtocolVersion, decode, encode};

use crate::mqtt_packets::{Encoded, any_packet, connect};

const PACKET_BYTES_MAX: usize = 1 << 20;

fn version() -> impl Strategy<Value = ProtocolVersion> {
    prop_oneof![Just(ProtocolVersion::V31), Just(ProtocolVersion::V311), Just(ProtocolVersion::V5)]
}

/// A connection from CONNECT on.
fn stream() -> impl Strategy<Value = Vec<Encoded>> {
    version().prop_flat_map(|version| (connect(version), vec(any_packet(version), 0..6))).prop_map(
        |(first, mut packets)| {
            packets.insert(0, first);
            packets
        },
    )
}

/// Decodes until bytes are missing; returns how long each packet was.
fn lengths(input: &[u8], known: &mut Option<ProtocolVersion>) -> Vec<usize> {
    let (mut at, mut found) = (0, Vec::new());
    while let Some(decoded) = decode(&input[at..], *known, PACKET_BYTES_MAX).unwrap() {
        if let Packet::Connect(connect) = decoded.packet {
            *known = Some(connect.version);
        }
        at += decoded.consumed;
        found.push(decoded.consumed);
    }
    found
}

/// Reads all fields of a packet, as a session would.
fn read_everything(packet: &Packet<'_>) {
    match packet {
        Packet::Connect(packet) => {
            read_properties(packet.properties);
            read_properties(packet.will.map_or(Properties::NONE, |will| will.properties));
        }
        Packet::ConnAck(packet) => read_properties(packet.properties),
        Packet::Publish(packet) => read_properties(packet.properties),
        Packet::PubAck(packet)
        | Packet::PubRec(packet)
        | Packet::PubRel(packet)
        | Packet::PubComp(packet) => {
            read_properties(packet.properties);
        }
        Packet::Subscribe(packet) => {
            read_properties(packet.properties);
            assert!(
                packet
                    .filters()
                    .all(|filter| !filter.topic.is_empty() && filter.qos() as u8 == filter.options & 3)
            );
            assert_ne!(packet.filters().count(), 0);
        }
        Packet::Unsubscribe(packet) => {
            read_properties(packet.properties);
            assert!(packet.filters().all(|filter| !filter.is_empty()));
            assert_ne!(packet.filters().count(), 0);
        }
        Packet::SubAck(packet) => read_properties(packet.properties),
        Packet::UnsubAck(packet) => read_properties(packet.properties),
        Packet::Disconnect(packet) => read_properties(packet.properties),
        Packet::Auth(packet) => read_properties(packet.properties),
        Packet::PingReq | Packet::PingResp => {}
    }
}

fn read_properties(properties: Properties<'_>) {
    let count = properties.iter().count();
    assert_eq!(count == 0, properties.is_empty());
    assert!(properties.user_properties().count() + properties.subscription_identifiers().count() <= count);
    assert_ne!(properties.receive_maximum(), 0);
    assert_ne!(properties.topic_alias(), Some(0));
    assert_ne!(properties.maximum_packet_size(), Some(0));
    for property in properties.iter() {
        assert!(properties.get(property.id()).is_some());
    }
    assert_eq!(properties.get(PropertyId::ReasonString).is_some(), properties.reason_string().is_some());
}

/// Decodes arbitrary bytes: decoded packets can be encoded again, and the code of a refusal can be sent.
fn check_any(bytes: &[u8], known: Option<ProtocolVersion>) -> Result<(), TestCaseError> {
    match decode(bytes, known, PACKET_BYTES_MAX) {
        Ok(None) => {}
        Ok(Some(Decoded { packet, consumed })) => {
            prop_assert!(consumed <= bytes.len());
            read_everything(&packet);
            let version = match (packet, known) {
                (Packet::Connect(connect), _) => connect.version,
                (_, Some(known)) => known,
                _ => return Err(TestCaseError::fail("something before CONNECT was understood")),
            };
            let mut again = Vec::new();
            encode(&packet, version, &mut again).unwrap();
            prop_assert!(again.len() <= consumed, "the encoder writes the shortest form");
            prop_assert_eq!(decode(&again, known, PACKET_BYTES_MAX).unwrap().unwrap().packet, packet);
        }
        Err(error) => {
            prop_assert!(error.offset <= bytes.len(), "{}", error);
            let farewell = if known.is_some() { PacketType::Disconnect } else { PacketType::ConnAck };
            prop_assert!(error.reason_code().belongs_to(farewell), "{}", error);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_stream_may_be_cut_anywhere(packets in stream(), cuts in vec(any::<Index>(), 0..8)) {
        let bytes: Vec<u8> = packets.iter().flat_map(|packet| packet.bytes.clone()).collect();
        let expected: Vec<usize> = packets.iter().map(|packet| packet.bytes.len()).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let (mut start, mut known, mut found) = (0, None, Vec::new());
        for cut in cuts {
            let part = lengths(&bytes[start..cut], &mut known);
            start += part.iter().sum::<usize>();
            found.extend(part);
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!(known, Some(packets[0].version));
    }

    #[test]
    fn a_packet_cut_at_any_byte_waits_for_the_rest(packet in version().prop_flat_map(any_packet)) {
        for len in 0..packet.bytes.len().min(2_000) {
            prop_assert_eq!(decode(&packet.bytes[..len], Some(packet.version), PACKET_BYTES_MAX), Ok(None));
        }
    }

    #[test]
    fn a_packet_over_the_limit_is_refused_by_its_header(packet in version().prop_flat_map(any_packet)) {
        let size = packet.bytes.len();
        let header = packet.bytes[1..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 2;
        let error = decode(&packet.bytes[..header], Some(packet.version), size - 1).unwrap_err();
        prop_assert_eq!(error.reason_code().0, 0x95);
        prop_assert!(decode(&packet.bytes, Some(packet.version), size).unwrap().is_some());
    }

    #[test]
    fn damaged_packets_are_decoded_without_a_panic(
        packet in version().prop_flat_map(any_packet), damage in vec((any::<Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = packet.bytes;
        for (place, value) in damage {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        check_any(&bytes, Some(packet.version))?;
    }

    #[test]
    fn damaged_connects_are_decoded_without_a_panic(
        packet in version().prop_flat_map(connect), damage in vec((any::<Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = packet.bytes;
        for (place, value) in damage {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        check_any(&bytes, None)?;
    }

    #[test]
    fn packets_of_changed_length_are_decoded_without_a_panic(
        packet in version().prop_flat_map(any_packet), place: Index, cut: bool,
    ) {
        prop_assume!(packet.bytes[1] < 0x7f && packet.bytes[1] > 0);
        let mut bytes = packet.bytes;
        let at = 2 + place.index(bytes.len() - 2);
        if cut {
            bytes.remove(at);
            bytes[1] -= 1;
        } else {
            bytes.insert(at, 0);
            bytes[1] += 1;
        }
        check_any(&bytes, Some(packet.version))?;
    }

    #[test]
    fn any_bytes_are_decoded_without_a_panic(
        first: u8, rest in vec(any::<u8>(), 0..120), known in prop_oneof![
            Just(None), Just(Some(ProtocolVersion::V31)), Just(Some(ProtocolVersion::V311)), Just(Some(ProtocolVersion::V5)),
        ],
    ) {
        let mut bytes = vec![first, rest.len() as u8];
        bytes.extend(rest);
        check_any(&bytes, known)?;
        check_any(&bytes[1..], known)?;
    }
}
