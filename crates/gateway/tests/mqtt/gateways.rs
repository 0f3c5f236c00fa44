//! Gateways, with a store that is busy or refuses something.

use std::sync::atomic::Ordering;

use hub::Durability;
use hub::gateways::limits::{GATEWAY_CREATED_AT_ONCE_MAX, GATEWAY_DEVICES_MAX};
use hub::registry::NewDevice;
use model::Value;
use wire::mqtt::{ProtocolVersion, QoS, ReasonCode, encode_publish};

use super::client::{Client, Fixture, Reply};
use super::moody::{LATER, ONE_TOO_MANY};
use super::{EVERY, one_worker, yes};

const GATEWAY_TELEMETRY: &str = "v1/gateway/telemetry";

fn fixture() -> Fixture {
    let fixture = Fixture::with(one_worker());
    let registry = fixture.hub.registry();
    let new = NewDevice {
        name: "gateway",
        profile: None,
        token: Some("t-gateway"),
        gateway: true,
        ..NewDevice::default()
    };
    registry.add_device(registry.default_tenant(), new).unwrap();
    fixture
}

/// Telemetry of the devices with these numbers.
fn message(from: usize, to: usize) -> String {
    let part = |n: usize| format!(r#""{n:05}":[{{"n":{n}}}]"#);
    format!("{{{}}}", (from..to).map(part).collect::<Vec<_>>().join(","))
}

fn send(client: &mut Client, packet_id: u16, payload: &str) -> Reply {
    client.publish_to(GATEWAY_TELEMETRY, QoS::AtLeastOnce, packet_id, payload.as_bytes());
    client.next()
}

#[test]
fn a_device_whose_rows_the_store_refuses_affects_no_other() {
    for version in EVERY {
        let fixture = fixture();
        let mut client = fixture.connect(version, "g", "t-gateway");
        let payload = format!(r#"{{"a":[{{"n":1}}],"b":[{{"{ONE_TOO_MANY}":1}}],"c":[{{"n":3}}]}}"#);
        let expected = match version {
            ProtocolVersion::V31 | ProtocolVersion::V311 => yes(1),
            ProtocolVersion::V5 => {
                let cause = r#"refused for "b", stored for the others: columns of a table is 20001, the limit is 20000"#;
                Reply::PubAck(1, ReasonCode::QUOTA_EXCEEDED, Some(cause.to_owned()))
            }
        };
        assert_eq!(send(&mut client, 1, &payload), expected);
        assert_eq!(send(&mut client, 2, r#"{"b":[{"n":2}]}"#), yes(2));
        for (device, value) in [("a", 1), ("b", 2), ("c", 3)] {
            assert_eq!(fixture.values("telemetry", device, "n"), [Value::I64(value)]);
        }
        assert_eq!(fixture.dead_letters("b", "payload"), [format!(r#"[{{"{ONE_TOO_MANY}":1}}]"#)]);
        assert_eq!(fixture.dead_letters("b", "topic"), [GATEWAY_TELEMETRY]);
        assert!(fixture.dead_letters("b", "reason")[0].contains("columns of a table"));
    }
}

#[test]
fn the_ack_names_a_refused_part_also_if_the_store_is_busy_with_the_next_one() {
    let fixture = fixture();
    let mut client = fixture.connect(ProtocolVersion::V5, "g", "t-gateway");
    assert_eq!(send(&mut client, 1, r#"{"a":[{"n":1}],"b":[{"n":1}]}"#), yes(1));
    fixture.moods.no_later.store(true, Ordering::SeqCst);
    let payload = format!(r#"{{"a":[{{"{ONE_TOO_MANY}":1}}],"b":[{{"{LATER}":2}}]}}"#);
    client.publish_to(GATEWAY_TELEMETRY, QoS::AtLeastOnce, 2, payload.as_bytes());
    assert!(client.hears_nothing());
    assert!(fixture.dead_letters("a", "payload").is_empty(), "all of the batch waits");
    fixture.moods.no_later.store(false, Ordering::SeqCst);
    let Reply::PubAck(2, ReasonCode::QUOTA_EXCEEDED, Some(reason)) = client.next() else {
        panic!("a part is refused")
    };
    assert!(reason.starts_with(r#"refused for "a", stored for the others: "#), "{reason}");
    assert_eq!(fixture.values("telemetry", "b", LATER), [Value::I64(2)]);
    assert_eq!(fixture.dead_letters("a", "payload"), [format!(r#"[{{"{ONE_TOO_MANY}":1}}]"#)]);
}

#[test]
fn parts_stay_together_when_the_store_takes_small_batches_only() {
    let fixture = fixture();
    let mut client = fixture.connect(ProtocolVersion::V5, "g", "t-gateway");
    assert_eq!(send(&mut client, 1, r#"{"a":[{"n":1}],"b":[{"n":1}],"c":[{"n":1}]}"#), yes(1));
    fixture.moods.rows_max.store(3, Ordering::SeqCst);
    let mut bytes = Vec::new();
    for packet_id in 2..=6 {
        let key = if packet_id == 4 { ONE_TOO_MANY } else { "n" };
        let payload = format!(r#"{{"a":[{{"n":{packet_id}}}],"b":[{{"{key}":{packet_id}}}]}}"#);
        let (topic, version) = (GATEWAY_TELEMETRY, client.version);
        encode_publish(topic, QoS::AtLeastOnce, packet_id, payload.as_bytes(), version, &mut bytes).unwrap();
    }
    client.send_bytes(&bytes);
    for packet_id in 2..=6 {
        match client.next() {
            Reply::PubAck(4, ReasonCode::QUOTA_EXCEEDED, Some(reason)) => {
                assert!(packet_id == 4 && reason.starts_with(r#"refused for "b""#), "{reason}");
            }
            other => assert_eq!(other, yes(packet_id)),
        }
    }
    let numbers = |expected: &[i64]| expected.iter().map(|n| Value::I64(*n)).collect::<Vec<_>>();
    assert_eq!(fixture.values("telemetry", "a", "n"), numbers(&[1, 2, 3, 4, 5, 6]));
    assert_eq!(fixture.values("telemetry", "b", "n"), numbers(&[1, 2, 3, 5, 6]));
}

#[test]
fn a_busy_store_neither_loses_nor_doubles_rows() {
    let fixture = fixture();
    let mut client = fixture.connect(ProtocolVersion::V5, "g", "t-gateway");
    assert_eq!(send(&mut client, 1, r#"{"a":[{"n":1}]}"#), yes(1));
    fixture.moods.no_new_series.store(true, Ordering::SeqCst);
    // The rows of the first device could enter the batch, those of the new one and the dead letter could not.
    let payload = br#"{"a":[{"n":2}],"b":[{"n":3}],"c":7}"#;
    client.publish_to(GATEWAY_TELEMETRY, QoS::AtLeastOnce, 2, payload);
    let registry = fixture.hub.registry();
    let tenant = registry.default_tenant();
    fixture.wait_for("the new devices", || registry.device_by_name(tenant, "c").is_some());
    assert!(client.hears_nothing());
    fixture.moods.no_new_series.store(false, Ordering::SeqCst);
    let Reply::PubAck(2, ReasonCode::PAYLOAD_FORMAT_INVALID, Some(reason)) = client.next() else {
        panic!("a part is refused")
    };
    assert!(reason.starts_with(r#"refused for 1 of 3 devices, stored for the others: "c": "#), "{reason}");
    assert_eq!(fixture.values("telemetry", "a", "n"), [Value::I64(1), Value::I64(2)]);
    assert_eq!(fixture.values("telemetry", "b", "n"), [Value::I64(3)]);
    assert_eq!(fixture.dead_letters("gateway", "payload"), [r#"{"c":7}"#]);
}

#[test]
fn a_reason_repeats_no_name_that_is_too_long() {
    let fixture = fixture();
    let mut client = fixture.connect(ProtocolVersion::V5, "g", "t-gateway");
    let payload = format!(r#"{{"{}":[{{"n":1}}]}}"#, "ä".repeat(10_000));
    assert!(matches!(send(&mut client, 1, &payload), Reply::PubAck(1, ReasonCode::QUOTA_EXCEEDED, Some(_))));
    let reason = &fixture.dead_letters("gateway", "reason")[0];
    assert!(reason.contains("20000") && reason.len() < 600, "{reason}");
    assert_eq!(fixture.dead_letters("gateway", "payload"), [payload]);
}

#[test]
fn messages_keep_their_order_while_devices_are_added() {
    let fixture = fixture();
    let mut client = fixture.connect(ProtocolVersion::V311, "g", "t-gateway");
    let mut bytes = Vec::new();
    for packet_id in 1..=50 {
        let payload = format!(r#"{{"d{packet_id}":[{{"n":{packet_id}}}],"all":[{{"n":{packet_id}}}]}}"#);
        let (qos, payload) = (QoS::AtLeastOnce, payload.as_bytes());
        encode_publish(GATEWAY_TELEMETRY, qos, packet_id, payload, client.version, &mut bytes).unwrap();
    }
    client.send_bytes(&bytes);
    for packet_id in 1..=50 {
        assert_eq!(client.next(), yes(packet_id));
    }
    let expected: Vec<Value> = (1..=50).map(Value::I64).collect();
    assert_eq!(fixture.values("telemetry", "all", "n"), expected);
    assert!(fixture.metrics().contains("tacho_gateway_devices_added_total 51"));
}

#[test]
fn other_connections_of_the_worker_continue_while_devices_are_added() {
    let fixture = fixture();
    let mut client = fixture.connect(ProtocolVersion::V5, "g", "t-gateway");
    let mut other = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    let registry = fixture.hub.registry();
    let before = registry.device_count();
    let payload = message(0, GATEWAY_DEVICES_MAX);
    client.publish_to(GATEWAY_TELEMETRY, QoS::AtLeastOnce, 1, payload.as_bytes());
    // The first step of many.
    fixture.wait_for("new devices", || registry.device_count() > before);
    other.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(other.next(), yes(1));
    assert!(registry.device_count() < before + GATEWAY_DEVICES_MAX, "the ack came while devices were added");
    assert_eq!(client.next(), yes(1));
    assert_eq!(registry.device_count(), before + GATEWAY_DEVICES_MAX);
}

#[test]
fn a_new_device_gets_the_profile_that_its_gateway_names_if_there_is_one() {
    let fixture = fixture();
    let registry = fixture.hub.registry();
    let tenant = registry.default_tenant();
    registry.add_profile(tenant, "pump", "pumps", Durability::Memory).unwrap();
    let mut client = fixture.connect(ProtocolVersion::V5, "g", "t-gateway");
    let names = [("a", r#""pump""#), ("b", r#""unheard of""#), ("a", r#""default""#)];
    for (packet_id, (device, profile)) in (1..).zip(names) {
        let payload = format!(r#"{{"device":"{device}","type":{profile}}}"#);
        client.publish_to("v1/gateway/connect", QoS::AtLeastOnce, packet_id, payload.as_bytes());
        assert_eq!(client.next(), yes(packet_id));
    }
    // An ack to a gateway promises the most, also for a device whose own acks promise little.
    fixture.store.hold();
    let payload = br#"{"a":[{"n":1}],"b":[{"n":2}]}"#;
    client.publish_to(GATEWAY_TELEMETRY, QoS::AtLeastOnce, 9, payload);
    fixture.wait_for("the rows", || !fixture.values("pumps", "a", "n").is_empty());
    assert!(client.is_silent());
    fixture.store.release();
    assert_eq!(client.next(), yes(9));
    assert_eq!(fixture.values("telemetry", "b", "n"), [Value::I64(2)]);
}

#[test]
fn a_connection_has_a_limit_of_devices() {
    let fixture = fixture();
    let mut client = fixture.connect(ProtocolVersion::V5, "g", "t-gateway");
    let part = |n: usize| format!(r#""{n:05}":[{{"n":{n}}}]"#);
    let message =
        |from: usize, to: usize| format!("{{{}}}", (from..to).map(part).collect::<Vec<_>>().join(","));
    const { assert!(GATEWAY_DEVICES_MAX > GATEWAY_CREATED_AT_ONCE_MAX) };
    assert_eq!(send(&mut client, 1, &message(0, GATEWAY_DEVICES_MAX - 1)), yes(1));
    let reply = send(&mut client, 2, &message(GATEWAY_DEVICES_MAX - 1, GATEWAY_DEVICES_MAX + 1));
    let Reply::PubAck(2, ReasonCode::QUOTA_EXCEEDED, Some(reason)) = reply else { panic!("{reply:?}") };
    assert!(reason.contains("GATEWAY_DEVICES_MAX"), "{reason}");
    let outside = format!("{GATEWAY_DEVICES_MAX:05}");
    let registry = fixture.hub.registry();
    assert!(registry.device_by_name(registry.default_tenant(), &outside).is_none());
    client.publish_to("v1/gateway/disconnect", QoS::AtLeastOnce, 3, br#"{"device":"00000"}"#);
    assert_eq!(client.next(), yes(3));
    assert_eq!(send(&mut client, 4, &message(GATEWAY_DEVICES_MAX, GATEWAY_DEVICES_MAX + 1)), yes(4));
    assert_eq!(fixture.values("telemetry", &outside, "n").len(), 1);
}
