//! The MQTT door on real sockets, with a store whose durability the test controls.

mod bad_input;
mod client;
mod conformance_messages;
mod conformance_sessions;
mod gateways;
mod limits;
mod login;
mod moody;
mod provisioning;
mod proxy;
mod topics;
mod trouble;
mod wills;

use std::time::Duration;

use gateway::mqtt::MqttOptions;
use hub::caller::Caller;
use model::Value;
use wire::mqtt::{
    Ack, Connect, Filter, Packet, Properties, PropertiesBuilder, Property, PropertyId, ProtocolVersion,
    Publish, QoS, ReasonCode, Subscribe,
};

use client::{Fixture, Reply, TELEMETRY};

const EVERY: [ProtocolVersion; 3] = [ProtocolVersion::V31, ProtocolVersion::V311, ProtocolVersion::V5];

fn one_worker() -> MqttOptions {
    MqttOptions { workers: 1, ..MqttOptions::default() }
}

fn yes(packet_id: u16) -> Reply {
    Reply::PubAck(packet_id, ReasonCode::SUCCESS, None)
}

#[test]
fn every_qos_stores_and_answers() {
    for version in EVERY {
        let fixture = Fixture::new();
        let mut client = fixture.connect(version, "c", "t-car");
        client.publish(QoS::AtMostOnce, 0, b"{\"a\":0}");
        client.publish(QoS::AtLeastOnce, 7, b"{\"a\":1}");
        assert_eq!(client.next(), yes(7));
        client.publish(QoS::ExactlyOnce, 8, b"{\"a\":2}");
        assert_eq!(client.next(), Reply::PubRec(8, ReasonCode::SUCCESS, None));
        // The client repeats the message before PUBREL: the server acks it again and does not store it again.
        client.publish(QoS::ExactlyOnce, 8, b"{\"a\":2}");
        assert_eq!(client.next(), Reply::PubRec(8, ReasonCode::SUCCESS, None));
        client.send(&Packet::PubRel(Ack::success(8)));
        assert_eq!(client.next(), Reply::PubComp(8, ReasonCode::SUCCESS));
        let values = fixture.values("telemetry", "car", "a");
        assert_eq!(values, [Value::I64(0), Value::I64(1), Value::I64(2)], "{version:?}");
    }
}

#[test]
fn a_client_of_mqtt_3_1_may_have_a_long_identifier_and_knows_no_session_present() {
    let fixture = Fixture::new();
    let mut client = fixture.open(ProtocolVersion::V31);
    let long = "a-modem-with-more-than-23-characters";
    assert_eq!(client.say_hello(long, "t-car", false).code, 0);
    client.publish(QoS::ExactlyOnce, 1, b"{\"a\":1}");
    assert_eq!(client.next(), Reply::PubRec(1, ReasonCode::SUCCESS, None));
    drop(client);
    let mut back = fixture.open(ProtocolVersion::V31);
    let hello = back.say_hello(long, "t-car", false);
    assert_eq!((hello.code, hello.session_present), (0, false));
    // The session is continued all the same: the release is known. Its repetition has DUP set, as MQTT 3.1 wants.
    back.send_bytes(b"\x6a\x02\x00\x01");
    assert_eq!(back.next(), Reply::PubComp(1, ReasonCode::SUCCESS));
    assert_eq!(fixture.values("telemetry", "car", "a"), [Value::I64(1)]);
}

#[test]
fn rows_of_one_message_without_times_are_all_kept_in_their_order() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(ProtocolVersion::V311, "c", "t-car");
    client.publish(QoS::AtLeastOnce, 1, br#"[{"rssi":-50},{"rssi":-61},{"rssi":-72}]"#);
    client.publish(QoS::AtLeastOnce, 2, br#"[{"rssi":-83},{"rssi":-94}]"#);
    assert_eq!([client.next(), client.next()], [yes(1), yes(2)]);
    let values = fixture.values("telemetry", "car", "rssi");
    assert_eq!(values, [-50, -61, -72, -83, -94].map(Value::I64));
}

#[test]
fn acks_wait_for_durability_and_keep_their_order() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    fixture.store.hold();
    for packet_id in 1..=50 {
        client.publish(QoS::AtLeastOnce, packet_id, format!("{{\"n\":{packet_id}}}").as_bytes());
    }
    client.publish(QoS::ExactlyOnce, 51, b"{\"n\":51}");
    client.publish(QoS::AtLeastOnce, 52, b"not json");
    assert!(client.is_silent(), "nothing may be acked before it is durable");
    assert_eq!(fixture.values("telemetry", "car", "n").len(), 51, "taken, readable, not acked");
    fixture.store.release();
    for packet_id in 1..=50 {
        assert_eq!(client.next(), yes(packet_id));
    }
    assert_eq!(client.next(), Reply::PubRec(51, ReasonCode::SUCCESS, None));
    let Reply::PubAck(52, ReasonCode::PAYLOAD_FORMAT_INVALID, Some(_)) = client.next() else {
        panic!("the refusal keeps its place in the order")
    };
}

#[test]
fn a_refused_payload_is_kept_and_explained() {
    let fixture = Fixture::new();
    let mut new = fixture.connect(ProtocolVersion::V5, "new", "t-car");
    new.publish(QoS::AtLeastOnce, 1, b"{\"a\":NaN}");
    match new.next() {
        Reply::PubAck(1, ReasonCode::PAYLOAD_FORMAT_INVALID, Some(reason)) => {
            assert!(reason.contains("not valid JSON"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let mut old = fixture.connect(ProtocolVersion::V311, "old", "t-van");
    old.publish(QoS::AtLeastOnce, 1, b"\xff\x00raw");
    assert_eq!(old.next(), yes(1));
    old.publish_to("some/other/topic", QoS::AtLeastOnce, 2, b"{\"a\":1}");
    assert_eq!(old.next(), yes(2));
    old.publish(QoS::AtLeastOnce, 3, b"{\"a\":1}");
    assert_eq!(old.next(), yes(3), "the session lives on");
    assert_eq!(fixture.dead_letters("car", "payload"), ["{\"a\":NaN}"]);
    assert_eq!(fixture.dead_letters("van", "payload_base64"), ["/wByYXc="]);
    assert_eq!(fixture.dead_letters("van", "topic"), [TELEMETRY, "some/other/topic"]);
    assert!(fixture.dead_letters("van", "reason")[1].contains(TELEMETRY));
    assert_eq!(fixture.values("telemetry", "van", "a"), [Value::I64(1)]);
}

#[test]
fn an_unknown_token_is_refused_with_its_code() {
    let fixture = Fixture::new();
    for (version, token, code) in [
        (ProtocolVersion::V31, "", 4),
        (ProtocolVersion::V31, "wrong", 5),
        (ProtocolVersion::V311, "", 4),
        (ProtocolVersion::V311, "wrong", 5),
        (ProtocolVersion::V5, "", 0x86),
        (ProtocolVersion::V5, "wrong", 0x87),
    ] {
        let mut client = fixture.open(version);
        assert_eq!(client.say_hello("c", token, true).code, code, "{version:?} {token:?}");
        assert_eq!(client.next(), Reply::Closed);
    }
    let mut nameless = fixture.open(ProtocolVersion::V311);
    assert_eq!(nameless.say_hello("", "t-car", false).code, 2, "an empty identifier needs a clean session");
    let mut nameless = fixture.open(ProtocolVersion::V31);
    assert_eq!(nameless.say_hello("", "t-car", true).code, 2, "MQTT 3.1 needs an identifier");
    assert!(fixture.metrics().contains(r#"tacho_refusals_total{door="mqtt",reason="token_unknown"} 3"#));
}

#[test]
fn an_unsupported_version_gets_its_return_code() {
    let fixture = Fixture::new();
    let mut client = fixture.open(ProtocolVersion::V311);
    client.connect_with_bytes(b"\x10\x0c\x00\x04MQTT\x06\x02\x00\x00\x00\x00");
    assert_eq!(client.next(), Reply::ConnAck { session_present: false, code: 1 });
    assert_eq!(client.next(), Reply::Closed);
}

#[test]
fn a_connect_whose_protocol_cannot_be_read_gets_no_connack() {
    let fixture = Fixture::new();
    for bytes in [
        // No level after the name; a name that is not UTF-8.
        &b"\x10\x06\x00\x04MQTT"[..],
        b"\x10\x06\x00\x04XXXX",
        b"\x10\x0c\x00\x04MQ\xc3\x28\x04\x02\x00\x00\x00\x00",
    ] {
        let mut client = fixture.open(ProtocolVersion::V311);
        client.connect_with_bytes(bytes);
        assert_eq!(client.next(), Reply::Closed, "{bytes:02x?}");
    }
}

#[test]
fn malformed_packets_close_with_their_reason() {
    let fixture = Fixture::new();
    for (bytes, reason) in [
        (&b"\x36\x03\x00\x01a"[..], ReasonCode::MALFORMED_PACKET),
        (b"\x30\x04\x00\x02\xc3\x28", ReasonCode::MALFORMED_PACKET),
        (b"\x30\x04\x00\x01#\x00", ReasonCode::TOPIC_NAME_INVALID),
        (b"\x30\xff\xff\xff\x7f", ReasonCode::PACKET_TOO_LARGE),
        (b"\x20\x02\x00\x00", ReasonCode::MALFORMED_PACKET),
        // A second CONNECT, of an unknown version. DISCONNECT has no code for an unknown version.
        (b"\x10\x0c\x00\x04MQTT\x09\x02\x00\x00\x00\x00", ReasonCode::PROTOCOL_ERROR),
    ] {
        let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
        client.send_bytes(bytes);
        match client.next() {
            Reply::Disconnect(got, Some(cause)) => assert_eq!(got, reason, "{bytes:02x?}: {cause}"),
            other => panic!("{bytes:02x?}: {other:?}"),
        }
        assert_eq!(client.next(), Reply::Closed);
        let mut old = fixture.connect(ProtocolVersion::V311, "c", "t-car");
        old.send_bytes(bytes);
        assert_eq!(old.next(), Reply::Closed, "3.1.1 has no words for it");
    }
    let mut survivor = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    survivor.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(survivor.next(), yes(1));
}

#[test]
fn the_second_user_of_a_client_identifier_takes_over() {
    for workers in [1, 2] {
        let fixture = Fixture::with(MqttOptions { workers, ..MqttOptions::default() });
        let mut first = fixture.connect(ProtocolVersion::V5, "same", "t-car");
        let mut second = fixture.connect(ProtocolVersion::V311, "same", "t-car");
        let Reply::Disconnect(ReasonCode::SESSION_TAKEN_OVER, Some(_)) = first.next() else {
            panic!("the first one gets a notice")
        };
        assert_eq!(first.next(), Reply::Closed);
        second.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
        assert_eq!(second.next(), yes(1));
    }
}

#[test]
fn an_unfinished_qos_2_exchange_survives_a_reconnect() {
    let fixture = Fixture::new();
    let mut client = fixture.open(ProtocolVersion::V311);
    client.say_hello("c", "t-car", false);
    client.publish(QoS::ExactlyOnce, 9, b"{\"a\":1}");
    client.next();
    drop(client);
    // The server sees the close before or during the next CONNECT. The exchange continues in both cases.
    let mut back = fixture.open(ProtocolVersion::V311);
    assert!(back.say_hello("c", "t-car", false).session_present);
    back.publish(QoS::ExactlyOnce, 9, b"{\"a\":1}");
    assert_eq!(back.next(), Reply::PubRec(9, ReasonCode::SUCCESS, None));
    back.send(&Packet::PubRel(Ack::success(9)));
    assert_eq!(back.next(), Reply::PubComp(9, ReasonCode::SUCCESS));
    assert_eq!(fixture.values("telemetry", "car", "a").len(), 1);
}

#[test]
fn a_client_over_its_receive_maximum_is_held_back_or_closed() {
    let fixture = Fixture::with(MqttOptions { receive_maximum: 4, ..MqttOptions::default() });
    fixture.store.hold();
    let mut new = fixture.connect(ProtocolVersion::V5, "new", "t-car");
    for packet_id in 1..=5 {
        new.publish(QoS::AtLeastOnce, packet_id, b"{\"a\":1}");
    }
    let Reply::Disconnect(ReasonCode::RECEIVE_MAXIMUM_EXCEEDED, _) = new.next() else {
        panic!("MQTT 5 knows the receive maximum")
    };
    let mut old = fixture.connect(ProtocolVersion::V311, "old", "t-van");
    for packet_id in 1..=40 {
        old.publish(QoS::AtLeastOnce, packet_id, format!("{{\"b\":{packet_id}}}").as_bytes());
    }
    fixture.store.release();
    for packet_id in 1..=40 {
        assert_eq!(old.next(), yes(packet_id), "3.1.1 does not, and loses nothing");
    }
}

#[test]
fn a_busy_store_delays_acks_and_loses_nothing() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(ProtocolVersion::V311, "c", "t-car");
    fixture.store.set_busy(Some("the disk is full"));
    client.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    std::thread::sleep(Duration::from_millis(300));
    assert!(fixture.values("telemetry", "car", "a").is_empty());
    fixture.store.set_busy(None);
    assert_eq!(client.next(), yes(1));
    assert_eq!(fixture.values("telemetry", "car", "a").len(), 1);
}

#[test]
fn a_sealed_store_acks_nothing() {
    let fixture = Fixture::new();
    let mut new = fixture.connect(ProtocolVersion::V5, "new", "t-car");
    let mut old = fixture.connect(ProtocolVersion::V311, "old", "t-van");
    fixture.store.hold();
    new.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert!(new.is_silent());
    fixture.store.seal("cannot sync the log");
    match new.next() {
        Reply::Disconnect(ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR, Some(cause)) => {
            assert!(cause.contains("sealed"), "{cause}");
        }
        other => panic!("{other:?}"),
    }
    old.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(old.next(), Reply::Closed);
}

#[test]
fn stopping_sends_the_acks_and_then_disconnect() {
    let mut fixture = Fixture::new();
    let mut new = fixture.connect(ProtocolVersion::V5, "new", "t-car");
    let mut old = fixture.connect(ProtocolVersion::V311, "old", "t-van");
    fixture.store.hold();
    new.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    old.publish(QoS::AtLeastOnce, 2, b"{\"a\":1}");
    assert!(new.is_silent() && old.is_silent());
    let door = fixture.door.take().unwrap();
    let stopping = std::thread::spawn(move || door.stop());
    std::thread::sleep(Duration::from_millis(100));
    fixture.store.release();
    assert_eq!(new.next(), yes(1));
    let Reply::Disconnect(ReasonCode::SERVER_SHUTTING_DOWN, _) = new.next() else {
        panic!("a goodbye is due")
    };
    assert_eq!((new.next(), old.next(), old.next()), (Reply::Closed, yes(2), Reply::Closed));
    stopping.join().unwrap();
}

#[test]
fn silent_connections_time_out() {
    let options = MqttOptions { connect_timeout_s: 1, ..MqttOptions::default() };
    let fixture = Fixture::with(options);
    let mut mute = fixture.open(ProtocolVersion::V5);
    let mut half = fixture.open(ProtocolVersion::V5);
    half.send_bytes(b"\x10\x20\x00\x04MQ");
    let mut sleepy = fixture.open(ProtocolVersion::V5);
    let connect =
        Connect { keep_alive_s: 1, username: Some("t-car"), ..Connect::new(ProtocolVersion::V5, "sleepy") };
    assert_eq!(sleepy.connect_with(connect).code, 0);
    assert_eq!(mute.next(), Reply::Closed);
    assert_eq!(half.next(), Reply::Closed);
    let Reply::Disconnect(ReasonCode::KEEP_ALIVE_TIMEOUT, _) = sleepy.next() else {
        panic!("keep-alive is due")
    };
}

#[test]
fn silent_connections_do_not_keep_others_out() {
    let fixture = Fixture::with(MqttOptions { connect_timeout_s: 1, ..MqttOptions::default() });
    let mute: Vec<_> = (0..5_000).map(|_| fixture.open(ProtocolVersion::V5)).collect();
    let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    client.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(client.next(), yes(1));
    for mut silent in mute {
        assert_eq!(silent.next(), Reply::Closed);
    }
    assert!(client.is_silent());
}

#[test]
fn a_topic_alias_stands_for_its_topic() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    for (packet_id, topic) in [(1, TELEMETRY), (2, "")] {
        let mut properties = PropertiesBuilder::new();
        properties.push(Property::TwoBytes(PropertyId::TopicAlias, 3)).unwrap();
        client.send(&Packet::Publish(Publish {
            dup: false,
            qos: QoS::AtLeastOnce,
            retain: false,
            topic,
            packet_id: Some(packet_id),
            properties: properties.as_properties(),
            payload: format!("{{\"a\":{packet_id}}}").as_bytes(),
        }));
        assert_eq!(client.next(), yes(packet_id));
    }
    assert_eq!(fixture.values("telemetry", "car", "a").len(), 2);
}

#[test]
fn topics_of_others_are_refused_with_the_codes_of_the_version() {
    let fixture = Fixture::new();
    let layout =
        Subscribe::layout(&[Filter { topic: "a/#", options: 1 }, Filter { topic: "b", options: 0 }]).unwrap();
    for (version, code) in [(ProtocolVersion::V311, 0x80), (ProtocolVersion::V5, 0x87)] {
        let mut client = fixture.connect(version, "c", "t-car");
        client.send(&Packet::Subscribe(Subscribe::new(5, Properties::NONE, &layout)));
        assert_eq!(client.next(), Reply::SubAck(5, vec![code; 2]));
        assert!(client.is_silent());
    }
}

#[test]
fn a_deleted_device_loses_its_connection() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    let device = fixture.hub.registry().device_by_token("t-car").unwrap();
    fixture.hub.registry().delete_device(device.id).unwrap();
    let Reply::Disconnect(ReasonCode::NOT_AUTHORIZED, _) = client.next() else {
        panic!("the session must end")
    };
}

#[test]
fn a_replaced_token_ends_the_connection_and_a_new_name_moves_it() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    let mut other = fixture.connect(ProtocolVersion::V311, "c", "t-van");
    client.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(client.next(), yes(1));
    let registry = fixture.hub.registry();
    let device = registry.device_by_token("t-car").unwrap();
    registry.rename_device(device.id, "coupe").unwrap();
    fixture.wait_for("a row under the new name", || {
        client.publish(QoS::AtLeastOnce, 2, b"{\"a\":2}");
        assert_eq!(client.next(), yes(2));
        !fixture.values("telemetry", "coupe", "a").is_empty()
    });
    assert_eq!(fixture.values("telemetry", "car", "a")[0], Value::I64(1));
    registry.set_token(device.id, Some("t-new")).unwrap();
    assert!(
        matches!(client.next(), Reply::Disconnect(ReasonCode::NOT_AUTHORIZED, Some(cause)) if cause.contains("replaced"))
    );
    other.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(other.next(), yes(1), "others stay");
}

#[test]
fn refusals_are_counted_per_device() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(ProtocolVersion::V311, "c", "t-car");
    for (packet_id, payload) in (1..).zip(["{\"\":1}", "{\"a\":1}", "{"]) {
        client.publish(QoS::AtLeastOnce, packet_id, payload.as_bytes());
        assert_eq!(client.next(), yes(packet_id));
    }
    let device = fixture.hub.registry().device_by_token("t-car").unwrap();
    let caller = Caller::local(device.tenant);
    let refused = fixture.hub.refusals_of(&caller, &device).unwrap().unwrap();
    assert_eq!((refused.messages, refused.door.as_str()), (2, "mqtt"));
    assert!(refused.reason.contains("ends too early"), "{}", refused.reason);
    // A malformed packet counts for the device, a broken connection does not.
    client.send_bytes(b"\x36\x03\x00\x01a");
    assert_eq!(client.next(), Reply::Closed);
    assert_eq!(fixture.hub.refusals_of(&caller, &device).unwrap().unwrap().messages, 3);
    drop(fixture.connect(ProtocolVersion::V311, "c", "t-car"));
    let van = fixture.hub.registry().device_by_token("t-van").unwrap();
    assert_eq!(fixture.hub.refusals_of(&caller, &van).unwrap(), None);
}

#[test]
fn packets_split_anywhere_are_joined() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(ProtocolVersion::V311, "c", "t-car");
    let mut bytes = Vec::new();
    for packet_id in 1..=3 {
        let payload = format!("{{\"n\":{packet_id},\"pad\":\"{}\"}}", "x".repeat(400));
        let version = ProtocolVersion::V311;
        wire::mqtt::encode_publish(
            TELEMETRY,
            QoS::AtLeastOnce,
            packet_id,
            payload.as_bytes(),
            version,
            &mut bytes,
        )
        .unwrap();
    }
    for chunk in bytes.chunks(7) {
        client.send_bytes(chunk);
        std::thread::yield_now();
    }
    assert_eq!([client.next(), client.next(), client.next()], [yes(1), yes(2), yes(3)]);
    assert_eq!(fixture.values("telemetry", "car", "n").len(), 3);
}
