//! MQTT: whatever arrives is refused or understood; what was understood can be said again and means the same.
//!
//! The first byte of the input chooses the version that the connection speaks, the rest arrives on it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::mqtt::{Packet, PacketType, Properties, ProtocolVersion, decode, encode};

const PACKET_BYTES_MAX: usize = 64 * 1024;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, stream)) = input.split_first() else { return };
    match choice % 4 {
        0 => follow(stream, None),
        1 => follow(stream, Some(ProtocolVersion::V311)),
        2 => follow(stream, Some(ProtocolVersion::V5)),
        _ => follow(stream, Some(ProtocolVersion::V31)),
    }
});

/// Takes packet after packet, the way a session does.
fn follow(mut stream: &[u8], mut known: Option<ProtocolVersion>) {
    loop {
        match decode(stream, known, PACKET_BYTES_MAX) {
            Ok(None) => return,
            Err(error) => {
                assert!(error.offset <= stream.len(), "{error}: {stream:02x?}");
                let farewell = if known.is_some() { PacketType::Disconnect } else { PacketType::ConnAck };
                assert!(error.reason_code().belongs_to(farewell), "{error} cannot be told to the peer");
                return;
            }
            Ok(Some(decoded)) => {
                assert!(decoded.consumed <= stream.len());
                waits_for_its_last_byte(&stream[..decoded.consumed - 1], known);
                comes_back(&decoded.packet, known, decoded.consumed);
                read_everything(&decoded.packet);
                if let Packet::Connect(connect) = decoded.packet {
                    known = Some(connect.version);
                }
                stream = &stream[decoded.consumed..];
            }
        }
    }
}

fn waits_for_its_last_byte(cut: &[u8], known: Option<ProtocolVersion>) {
    assert_eq!(decode(cut, known, PACKET_BYTES_MAX), Ok(None));
}

fn comes_back(packet: &Packet<'_>, known: Option<ProtocolVersion>, consumed: usize) {
    let version = match packet {
        Packet::Connect(connect) => connect.version,
        _ => known.expect("only CONNECT comes before a version is known"),
    };
    let mut bytes = Vec::new();
    encode(packet, version, &mut bytes).expect("what was understood can be said again");
    assert!(bytes.len() <= consumed, "the encoder writes the shortest form");
    let again = decode(&bytes, known, PACKET_BYTES_MAX).expect("it is valid").expect("it is whole");
    assert_eq!((again.packet, again.consumed), (*packet, bytes.len()));
}

/// Lazy views panic when they are read, not when they are made.
fn read_everything(packet: &Packet<'_>) {
    let properties = match packet {
        Packet::Connect(packet) => {
            read_properties(packet.will.map_or(Properties::NONE, |will| will.properties));
            packet.properties
        }
        Packet::ConnAck(packet) => packet.properties,
        Packet::Publish(packet) => packet.properties,
        Packet::PubAck(packet)
        | Packet::PubRec(packet)
        | Packet::PubRel(packet)
        | Packet::PubComp(packet) => packet.properties,
        Packet::Subscribe(packet) => {
            assert!(packet.filters().all(|filter| !filter.topic.is_empty()));
            packet.properties
        }
        Packet::Unsubscribe(packet) => {
            assert!(packet.filters().all(|filter| !filter.is_empty()));
            packet.properties
        }
        Packet::SubAck(packet) => packet.properties,
        Packet::UnsubAck(packet) => packet.properties,
        Packet::Disconnect(packet) => packet.properties,
        Packet::Auth(packet) => packet.properties,
        Packet::PingReq | Packet::PingResp => Properties::NONE,
    };
    read_properties(properties);
}

fn read_properties(properties: Properties<'_>) {
    assert_eq!(properties.iter().count() == 0, properties.is_empty());
    assert!(properties.iter().all(|property| properties.get(property.id()).is_some()));
    assert_ne!(properties.receive_maximum(), 0);
    assert_ne!(properties.topic_alias(), Some(0));
}
