//! Arbitrary packets round-trip; arbitrary bytes cause no panic.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::mqtt::{
    Ack, ConnAck, Connect, Disconnect, Packet, Properties, PropertiesBuilder, Property, PropertyId,
    ProtocolVersion, Publish, QoS, ReasonCode, Will, decode, encode,
};

const PACKET_BYTES_MAX: usize = 1 << 20;

fn version() -> impl Strategy<Value = ProtocolVersion> {
    prop_oneof![Just(ProtocolVersion::V31), Just(ProtocolVersion::V311), Just(ProtocolVersion::V5)]
}

fn qos() -> impl Strategy<Value = QoS> {
    prop_oneof![Just(QoS::AtMostOnce), Just(QoS::AtLeastOnce), Just(QoS::ExactlyOnce)]
}

fn topic() -> impl Strategy<Value = String> {
    "[a-zäß/0-9]{1,200}"
}

/// Encodes, decodes, and compares the renderings: they show every field.
fn round_trip(packet: &Packet<'_>, version: ProtocolVersion, known: bool) -> Result<(), TestCaseError> {
    let mut bytes = vec![0xaa];
    encode(packet, version, &mut bytes).unwrap();
    let decoded = decode(&bytes[1..], known.then_some(version), PACKET_BYTES_MAX).unwrap().unwrap();
    prop_assert_eq!(decoded.consumed, bytes.len() - 1);
    prop_assert_eq!(&decoded.packet, packet);
    Ok(())
}

proptest! {
    #[test]
    fn publishes_round_trip(
        version in version(), qos in qos(), dup: bool, retain: bool, topic in topic(), id in 1..=u16::MAX,
        payload in vec(any::<u8>(), 0..40_000), alias in option::of(1..=u16::MAX), user in option::of("[a-z]{0,9}"),
    ) {
        let mut properties = PropertiesBuilder::new();
        if let Some(alias) = alias {
            properties.push(Property::TwoBytes(PropertyId::TopicAlias, alias)).unwrap();
        }
        if let Some(user) = &user {
            properties.push(Property::Pair(PropertyId::UserProperty, user, "v")).unwrap();
        }
        let v5 = version == ProtocolVersion::V5;
        let publish = Publish {
            dup: dup && qos != QoS::AtMostOnce,
            qos,
            retain,
            topic: &topic,
            packet_id: (qos != QoS::AtMostOnce).then_some(id),
            properties: if v5 { properties.as_properties() } else { Properties::NONE },
            payload: &payload,
        };
        round_trip(&Packet::Publish(publish), version, true)?;
    }

    #[test]
    fn connects_round_trip(
        version in version(), is_bridge: bool, clean_start: bool, keep_alive_s: u16, client_id in "[a-z0-9ü]{0,60}",
        username in option::of("[ -~]{0,40}"), password in option::of(vec(any::<u8>(), 0..40)),
        will in option::of((topic(), vec(any::<u8>(), 0..100), qos(), any::<bool>())), receive_maximum in 1..=u16::MAX,
    ) {
        let v5 = version == ProtocolVersion::V5;
        let mut properties = PropertiesBuilder::new();
        properties.push(Property::TwoBytes(PropertyId::ReceiveMaximum, receive_maximum)).unwrap();
        let connect = Connect {
            is_bridge: is_bridge && !v5,
            version,
            clean_start,
            keep_alive_s,
            properties: if v5 { properties.as_properties() } else { Properties::NONE },
            client_id: &client_id,
            will: will.as_ref().map(|(topic, payload, qos, retain)| Will {
                qos: *qos, retain: *retain, properties: Properties::NONE, topic, payload,
            }),
            username: username.as_deref(),
            password: password.as_deref().filter(|_| v5 || username.is_some()),
        };
        round_trip(&Packet::Connect(connect), version, false)?;
    }

    #[test]
    fn answers_round_trip(version in version(), id in 1..=u16::MAX, present: bool, text in "[ -~]{0,300}") {
        let v5 = version == ProtocolVersion::V5;
        let mut builder = PropertiesBuilder::new();
        builder.push(Property::Text(PropertyId::ReasonString, &text)).unwrap();
        let properties = if v5 { builder.as_properties() } else { Properties::NONE };
        let refused = if v5 { ReasonCode::PAYLOAD_FORMAT_INVALID } else { ReasonCode::SUCCESS };
        let ack = Ack { packet_id: id, reason: refused, properties };
        round_trip(&Packet::PubAck(ack), version, true)?;
        round_trip(&Packet::PubRec(ack), version, true)?;
        round_trip(&Packet::PubRel(Ack::success(id)), version, true)?;
        let code = if v5 { 0x87 } else { 5 };
        round_trip(&Packet::ConnAck(ConnAck { session_present: false, code, properties }), version, true)?;
        let accepted = ConnAck { session_present: present, code: 0, properties };
        round_trip(&Packet::ConnAck(accepted), version, true)?;
        let reason = if v5 { ReasonCode::SERVER_SHUTTING_DOWN } else { ReasonCode::SUCCESS };
        round_trip(&Packet::Disconnect(Disconnect { reason, properties }), version, true)?;
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_decoded(
        first in 0..=255_u8, rest in vec(any::<u8>(), 0..200), known in option::of(version()),
    ) {
        let mut bytes = vec![first, rest.len() as u8 & 0x7f];
        bytes.extend(rest);
        if let Ok(Some(decoded)) = decode(&bytes, known, PACKET_BYTES_MAX) {
            prop_assert!(decoded.consumed <= bytes.len());
            // A decoded packet can be encoded, and the result decodes to the same packet.
            let version = match decoded.packet { Packet::Connect(connect) => connect.version, _ => known.unwrap() };
            let mut again = Vec::new();
            encode(&decoded.packet, version, &mut again).unwrap();
            let repeated = decode(&again, known, PACKET_BYTES_MAX).unwrap().unwrap();
            prop_assert_eq!(repeated.packet, decoded.packet);
        }
    }
}
