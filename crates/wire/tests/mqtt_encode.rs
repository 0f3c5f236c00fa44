//! Packets that the encoder refuses, and the buffer after a refusal.

use wire::mqtt::{
    Ack, Auth, ConnAck, Connect, Disconnect, EncodeError, Filter, Packet, Properties, PropertiesBuilder,
    Property, PropertyId, ProtocolVersion, Publish, QoS, ReasonCode, SubAck, Subscribe, UnsubAck,
    Unsubscribe, Will, encode, encode_puback, encode_publish,
};

const NONE: Properties<'static> = Properties::NONE;
const PUBLISH: Publish<'static> = Publish {
    dup: false,
    qos: QoS::AtLeastOnce,
    retain: false,
    topic: "t",
    packet_id: Some(1),
    properties: NONE,
    payload: b"p",
};
const CONNECT: Connect<'static> = Connect {
    is_bridge: false,
    version: ProtocolVersion::V311,
    clean_start: true,
    keep_alive_s: 0,
    properties: NONE,
    client_id: "c",
    will: None,
    username: None,
    password: None,
};

/// Both versions refuse the packet for this cause and leave the buffer unchanged.
#[track_caller]
fn refused(packet: Packet<'_>, versions: &[ProtocolVersion], cause: &str) {
    for version in versions {
        let mut out = b"before".to_vec();
        let error = encode(&packet, *version, &mut out).unwrap_err();
        assert!(error.to_string().contains(cause), "{version:?}: {error}");
        assert_eq!(out, b"before", "{version:?}: {error}");
    }
}

const BOTH: &[ProtocolVersion] = &[ProtocolVersion::V311, ProtocolVersion::V5];
const V311: &[ProtocolVersion] = &[ProtocolVersion::V311];
const V5: &[ProtocolVersion] = &[ProtocolVersion::V5];

#[test]
fn messages_that_every_peer_refuses_are_not_encoded() {
    let packet = |publish| Packet::Publish(publish);
    refused(packet(Publish { topic: "a/+", ..PUBLISH }), BOTH, "MQTT-3.3.2-2");
    refused(packet(Publish { topic: "a\0", ..PUBLISH }), BOTH, "MQTT-3.3.2-2");
    refused(packet(Publish { topic: "", ..PUBLISH }), V311, "MQTT-4.7.3-1");
    refused(packet(Publish { topic: "", ..PUBLISH }), V5, "without a topic alias");
    refused(packet(Publish { packet_id: None, ..PUBLISH }), BOTH, "identifier is zero");
    refused(packet(Publish { packet_id: Some(0), ..PUBLISH }), BOTH, "identifier is zero");
    refused(packet(Publish { dup: true, qos: QoS::AtMostOnce, ..PUBLISH }), BOTH, "MQTT-3.3.1-2");
    let long = "t".repeat(65_536);
    refused(packet(Publish { topic: &long, ..PUBLISH }), BOTH, "the topic has 65536 bytes");
}

#[test]
fn a_message_one_byte_over_the_largest_length_is_not_encoded() {
    // 2 bytes of topic length, 1 of topic, 2 of identifier. No code touches the zeros, so they use no memory.
    let payload = vec![0; 268_435_456 - 5];
    let mut out = Vec::new();
    let error =
        encode_publish("t", QoS::AtLeastOnce, 1, &payload, ProtocolVersion::V5, &mut out).unwrap_err();
    assert_eq!((error, out.len()), (EncodeError::PacketTooLong { bytes: 268_435_457 }, 0));
}

#[test]
fn invalid_connects_are_not_encoded() {
    let packet = |connect| Packet::Connect(connect);
    let will = Will { qos: QoS::AtMostOnce, retain: false, properties: NONE, topic: "w/#", payload: b"" };
    refused(packet(Connect { password: Some(b"p"), ..CONNECT }), BOTH, "MQTT-3.1.2-22");
    refused(packet(Connect { client_id: "a\0b", ..CONNECT }), BOTH, "MQTT-1.5.4-2");
    refused(packet(Connect { will: Some(will), ..CONNECT }), BOTH, "will topic");
    let long = vec![0; 65_536];
    let connect = Connect { username: Some("u"), password: Some(&long), ..CONNECT };
    refused(packet(connect), BOTH, "the password has 65536 bytes");
}

#[test]
fn reason_codes_of_other_packets_are_not_encoded() {
    let ack = |code| Ack { packet_id: 1, reason: ReasonCode(code), properties: NONE };
    refused(Packet::PubAck(ack(0x92)), V5, "MQTT5 2.4");
    refused(Packet::PubRec(ack(0x77)), V5, "MQTT5 2.4");
    refused(Packet::PubRel(ack(0x99)), V5, "MQTT5 2.4");
    refused(Packet::PubComp(ack(0x10)), V5, "MQTT5 2.4");
    refused(Packet::PubAck(Ack::success(0)), BOTH, "identifier is zero");
    let connack =
        |session_present, code| Packet::ConnAck(ConnAck { session_present, code, properties: NONE });
    refused(connack(false, 6), BOTH, "does not belong to CONNACK");
    refused(connack(true, 5), V311, "MQTT-3.2.2-4 of 3.1.1");
    refused(connack(true, 0x87), V5, "MQTT-3.2.2-6");
    let disconnect = Disconnect { reason: ReasonCode::UNSUPPORTED_PROTOCOL_VERSION, properties: NONE };
    refused(Packet::Disconnect(disconnect), V5, "MQTT5 2.4");
    let auth = |reason| Packet::Auth(Auth { reason, properties: NONE });
    refused(auth(ReasonCode::SUCCESS), V311, "only in MQTT 5");
    refused(auth(ReasonCode::CONTINUE_AUTHENTICATION), V5, "Authentication Method");
}

#[test]
fn empty_and_invalid_lists_are_not_encoded() {
    let subscribe = |filters: &[Filter<'_>], versions, cause: &str| {
        let layout = Subscribe::layout(filters).unwrap();
        refused(Packet::Subscribe(Subscribe::new(1, NONE, &layout)), versions, cause);
    };
    subscribe(&[], BOTH, "MQTT-3.8.3-2");
    subscribe(&[Filter { topic: "a#", options: 0 }], BOTH, "MQTT-4.7.1-1");
    subscribe(&[Filter { topic: "a", options: 3 }], BOTH, "QoS is 3");
    subscribe(&[Filter { topic: "a", options: 0x10 }], V311, "reserved");
    subscribe(&[Filter { topic: "$share/g/a", options: 4 }], V5, "MQTT-3.8.3-4");
    assert!(Subscribe::layout(&[Filter { topic: "a\0", options: 0 }]).is_err());
    // The bytes are not a list of topic filters.
    refused(Packet::Subscribe(Subscribe::new(1, NONE, &[0, 9, b'a'])), BOTH, "over the packet's end");
    refused(Packet::Unsubscribe(Unsubscribe::new(1, NONE, &[])), BOTH, "MQTT-3.10.3-2");
    let suback = |codes| Packet::SubAck(SubAck { packet_id: 1, properties: NONE, codes });
    refused(suback(&[]), BOTH, "without codes");
    refused(suback(&[0x11]), BOTH, "MQTT-3.9.3-2");
    refused(suback(&[0x8f]), V311, "MQTT-3.9.3-2");
    let unsuback = |codes| Packet::UnsubAck(UnsubAck { packet_id: 1, properties: NONE, codes });
    refused(unsuback(&[1]), V5, "MQTT-3.11.3-2");
}

#[test]
fn misplaced_and_repeated_properties_are_not_encoded() {
    let mut alias = PropertiesBuilder::new();
    alias.push(Property::TwoBytes(PropertyId::TopicAlias, 1)).unwrap();
    let ack = Ack { packet_id: 1, reason: ReasonCode::SUCCESS, properties: alias.as_properties() };
    refused(Packet::PubAck(ack), V5, "does not belong into this packet");
    alias.push(Property::TwoBytes(PropertyId::TopicAlias, 2)).unwrap();
    let publish = Publish { properties: alias.as_properties(), ..PUBLISH };
    refused(Packet::Publish(publish), V5, "appears twice");
}

#[test]
fn fields_unknown_to_3_1_1_are_left_out() {
    let mut text = PropertiesBuilder::new();
    text.push(Property::Text(PropertyId::ReasonString, "full")).unwrap();
    let properties = text.as_properties();
    let reason = ReasonCode::QUOTA_EXCEEDED;
    let mut out = Vec::new();
    let ack = Packet::PubAck(Ack { packet_id: 0x0102, reason, properties });
    encode(&ack, ProtocolVersion::V311, &mut out).unwrap();
    encode(&Packet::Disconnect(Disconnect { reason, properties }), ProtocolVersion::V311, &mut out).unwrap();
    assert_eq!(out, [0x40, 2, 1, 2, 0xe0, 0]);
}

#[test]
fn the_shortcuts_write_the_bytes_of_the_encoder() {
    for version in [ProtocolVersion::V311, ProtocolVersion::V5] {
        let (mut short, mut long) = (Vec::new(), Vec::new());
        encode_puback(0xfffe, version, &mut short);
        encode(&Packet::PubAck(Ack::success(0xfffe)), version, &mut long).unwrap();
        encode_publish("t", QoS::AtLeastOnce, 1, b"p", version, &mut short).unwrap();
        encode(&Packet::Publish(PUBLISH), version, &mut long).unwrap();
        encode_publish("t", QoS::AtMostOnce, 1, b"p", version, &mut short).unwrap();
        let unnumbered = Publish { qos: QoS::AtMostOnce, packet_id: None, ..PUBLISH };
        encode(&Packet::Publish(unnumbered), version, &mut long).unwrap();
        assert_eq!(short, long);
    }
}
