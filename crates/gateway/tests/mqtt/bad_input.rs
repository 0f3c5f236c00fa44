//! Invalid input, one case each.

use std::time::Duration;

use gateway::mqtt::MqttOptions;
use model::Value;
use wire::mqtt::{
    Connect, Packet, Properties, PropertiesBuilder, Property, PropertyId, ProtocolVersion, QoS, ReasonCode,
};

use super::client::{Fixture, Reply, TELEMETRY};
use super::{EVERY, yes};

#[test]
fn every_invalid_payload_is_kept_with_the_reason() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let wide = format!("{{{}}}", (0..10_001).map(|n| format!("\"k{n}\":1")).collect::<Vec<_>>().join(","));
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1_000_000));
    let cases = [
        (deep.as_str(), "the nesting of a JSON value is 100000, the limit is 32"),
        (&wide, "the number of keys in one row is 10001, the limit is 10000"),
        (&long, "the length of a value in bytes is 1000000, the limit is 65535"),
        ("{\"a\":NaN}", "NaN is not a JSON number"),
        ("{\"a\":Infinity}", "not valid JSON"),
        ("{\"a\":-Infinity}", "not valid JSON"),
        ("{\"ts\":1,\"values\":{\"a\":1}}", "too old"),
        ("{\"ts\":-9223372036854775808,\"values\":{\"a\":1}}", "too old"),
        ("{\"ts\":1700000000,\"values\":{\"a\":1}}", "it looks like seconds"),
        ("{\"ts\":9223372036854775807,\"values\":{\"a\":1}}", "too far in the future"),
        ("{\"ts\":9223372036854775808,\"values\":{\"a\":1}}", "too far in the future"),
        ("{\"\":1}", "the key is empty"),
    ];
    for version in EVERY {
        let fixture = Fixture::new();
        let mut client = fixture.connect(version, "c", "t-car");
        for (packet_id, (payload, part)) in (1..).zip(&cases) {
            client.publish(QoS::AtLeastOnce, packet_id, payload.as_bytes());
            match (version, client.next()) {
                (ProtocolVersion::V31 | ProtocolVersion::V311, reply) => assert_eq!(reply, yes(packet_id)),
                (_, Reply::PubAck(id, ReasonCode::PAYLOAD_FORMAT_INVALID, Some(reason))) => {
                    assert!(id == packet_id && reason.contains(part), "{part}: {reason}");
                }
                (_, other) => panic!("{part}: {other:?}"),
            }
        }
        let (payloads, reasons) =
            (fixture.dead_letters("car", "payload"), fixture.dead_letters("car", "reason"));
        assert_eq!(payloads.len(), cases.len());
        for (((payload, part), kept), reason) in cases.iter().zip(payloads).zip(reasons) {
            assert!(kept == *payload && reason.contains(part), "{part}: {reason}");
        }
        client.publish(QoS::AtLeastOnce, 99, b"{\"a\":1}");
        assert_eq!(client.next(), yes(99), "the session lives on");
        assert_eq!(fixture.values("telemetry", "car", "a"), [Value::I64(1)]);
    }
}

#[test]
fn unusual_valid_payloads_are_accepted() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    let (two_to_63, like_a_tag) = ("{\"n\":9223372036854775808}", "{\"device\":\"van\",\"table\":1}");
    for (packet_id, payload) in (1..).zip([two_to_63, like_a_tag]) {
        client.publish(QoS::AtLeastOnce, packet_id, payload.as_bytes());
        assert_eq!(client.next(), yes(packet_id));
    }
    assert_eq!(fixture.values("telemetry", "car", "n"), [Value::Json("9223372036854775808".into())]);
    assert_eq!(fixture.values("telemetry", "car", "device"), [Value::String("van".into())]);
    assert!(fixture.values("telemetry", "van", "device").is_empty(), "a payload cannot name another device");
}

#[test]
fn a_packet_over_the_limit_is_refused_by_its_header() {
    let options = MqttOptions { packet_bytes_max: 1_000, ..MqttOptions::default() };
    let fixture = Fixture::with(options);
    let fits = 1_000 - (2 + TELEMETRY.len() + 2) - 3;
    for version in EVERY {
        let room = if version == ProtocolVersion::V5 { fits - 1 } else { fits };
        let payload = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        let mut client = fixture.connect(version, "c", "t-car");
        client.publish(QoS::AtLeastOnce, 1, payload(room).as_bytes());
        assert_eq!(client.next(), yes(1));
        // The client sends only the header of a packet of 1,001 bytes.
        client.send_bytes(b"\x32\xe6\x07");
        if version == ProtocolVersion::V5 {
            assert!(matches!(client.next(), Reply::Disconnect(ReasonCode::PACKET_TOO_LARGE, Some(_))));
        }
        assert_eq!(client.next(), Reply::Closed);
    }
}

#[test]
fn a_connect_over_its_limit_is_refused_by_its_header() {
    let fixture = Fixture::with(MqttOptions { connect_timeout_s: 3_600, ..MqttOptions::default() });
    let mut stranger = fixture.open(ProtocolVersion::V5);
    // The client sends only the first bytes of a CONNECT of 17,000 bytes.
    stranger.send_bytes(b"\x10\xe8\x84\x01\x00\x04MQTT\x05");
    assert_eq!(stranger.next(), Reply::Closed);
}

#[test]
fn a_connect_that_arrives_slowly_times_out() {
    let fixture = Fixture::with(MqttOptions { connect_timeout_s: 1, ..MqttOptions::default() });
    let mut slow = fixture.open(ProtocolVersion::V5);
    slow.send_bytes(b"\x10\x7f");
    slow.socket.set_nonblocking(true).unwrap();
    let mut sent = 0;
    while sent < 100 && !matches!(slow.socket.peek(&mut [0]), Ok(0)) {
        slow.send_bytes(b"\x00");
        sent += 1;
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(sent < 100, "every byte begins the time again");
}

#[test]
fn an_incomplete_packet_times_out() {
    let fixture = Fixture::with(MqttOptions { packet_timeout_s: 1, ..MqttOptions::default() });
    let mut whole = fixture.connect(ProtocolVersion::V5, "1", "t-van");
    let mut half = fixture.connect(ProtocolVersion::V5, "2", "t-car");
    half.send_bytes(b"\x32\x40\x00\x17v1/dev");
    match half.next() {
        Reply::Disconnect(ReasonCode::KEEP_ALIVE_TIMEOUT, Some(cause)) => {
            assert!(cause.contains("the rest of a packet"), "{cause}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(half.next(), Reply::Closed);
    assert!(whole.is_silent(), "silence between packets is not a fault");
}

#[test]
fn messages_without_pubrel_are_bounded() {
    let fixture = Fixture::with(MqttOptions { receive_maximum: 4, ..MqttOptions::default() });
    let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    for packet_id in 1..=4 {
        client.publish(QoS::ExactlyOnce, packet_id, b"{\"a\":1}");
        assert_eq!(client.next(), Reply::PubRec(packet_id, ReasonCode::SUCCESS, None));
    }
    client.publish(QoS::ExactlyOnce, 5, b"{\"a\":1}");
    assert!(matches!(client.next(), Reply::Disconnect(ReasonCode::RECEIVE_MAXIMUM_EXCEEDED, Some(_))));
}

fn connect_with(fixture: &Fixture, property: Property<'_>) -> (super::client::Client, u8) {
    let mut properties = PropertiesBuilder::new();
    properties.push(property).unwrap();
    let mut client = fixture.open(ProtocolVersion::V5);
    let connect = Connect {
        properties: properties.as_properties(),
        username: Some("t-car"),
        ..Connect::new(ProtocolVersion::V5, "c")
    };
    let code = client.connect_with(connect).code;
    (client, code)
}

#[test]
fn a_client_without_problem_information_gets_a_reason_only_in_disconnect() {
    let fixture = Fixture::new();
    let (mut client, code) = connect_with(&fixture, Property::Byte(PropertyId::RequestProblemInformation, 0));
    assert_eq!(code, 0);
    client.publish(QoS::AtLeastOnce, 1, b"not json");
    assert_eq!(client.next(), Reply::PubAck(1, ReasonCode::PAYLOAD_FORMAT_INVALID, None));
    client.send(&Packet::ConnAck(wire::mqtt::ConnAck {
        session_present: false,
        code: 0,
        properties: Properties::NONE,
    }));
    assert!(matches!(client.next(), Reply::Disconnect(ReasonCode::PROTOCOL_ERROR, Some(_))));
}

#[test]
fn a_small_maximum_packet_size_leaves_out_the_terms() {
    let fixture = Fixture::new();
    let size = |bytes| Property::FourBytes(PropertyId::MaximumPacketSize, bytes);
    let (mut client, code) = connect_with(&fixture, size(5));
    assert_eq!(code, 0);
    client.publish(QoS::AtLeastOnce, 1, b"not json");
    let refused = Reply::PubAck(1, ReasonCode::PAYLOAD_FORMAT_INVALID, None);
    assert_eq!(client.next(), refused, "the reason string does not fit");
}

#[test]
fn options_out_of_range_are_refused_at_the_start() {
    let fixture = Fixture::new();
    for options in [
        MqttOptions { receive_maximum: 0, ..MqttOptions::default() },
        MqttOptions { packet_bytes_max: 100, ..MqttOptions::default() },
        MqttOptions { packet_bytes_max: 5 * 1024 * 1024, ..MqttOptions::default() },
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let opened = gateway::mqtt::MqttDoor::start(fixture.hub.clone(), listener, options);
        assert_eq!(opened.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    }
}
