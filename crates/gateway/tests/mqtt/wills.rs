//! Wills: what a device has said beforehand for the case that it vanishes.

use std::sync::atomic::Ordering;

use model::SeriesKey;
use store::Store;
use wire::mqtt::{Connect, Disconnect, Packet, Properties, ProtocolVersion, QoS, ReasonCode, Will};

use super::client::{Client, Fixture, Reply, TELEMETRY};

const GONE: &str = "{\"gone\":true}";

fn connect(fixture: &Fixture, version: ProtocolVersion, client_id: &str, token: &str, will: &str) -> Client {
    let mut client = fixture.open(version);
    let connect = Connect {
        version,
        clean_start: true,
        keep_alive_s: 0,
        properties: Properties::NONE,
        client_id,
        will: Some(Will {
            qos: QoS::AtMostOnce,
            retain: false,
            properties: Properties::NONE,
            topic: TELEMETRY,
            payload: will.as_bytes(),
        }),
        username: Some(token),
        password: None,
    };
    assert_eq!(client.connect_with(connect).code, 0);
    client
}

fn wills_lost(fixture: &Fixture) -> u64 {
    let metrics = fixture.metrics();
    let line = metrics.lines().find(|line| line.contains("reason=\"will\""));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// Waits until the server knows that all clients are gone.
fn wait_for_farewells(fixture: &Fixture) {
    fixture.wait_for("the end of all connections", || {
        fixture.metrics().lines().any(|line| line == "tacho_connections{door=\"mqtt\"} 0")
    });
}

#[test]
fn a_will_is_stored_when_the_device_vanishes_and_only_then() {
    let fixture = Fixture::new();
    for (client_id, token, says_goodbye) in [("1", "t-car", true), ("2", "t-van", false)] {
        let mut client = connect(&fixture, ProtocolVersion::V5, client_id, token, GONE);
        if says_goodbye {
            let farewell = Disconnect { reason: ReasonCode::SUCCESS, properties: Properties::NONE };
            client.send(&Packet::Disconnect(farewell));
            assert_eq!(client.next(), Reply::Closed);
        }
    }
    fixture.wait_for("the will", || !fixture.values("telemetry", "van", "gone").is_empty());
    assert!(fixture.values("telemetry", "car", "gone").is_empty());
}

#[test]
fn an_end_that_comes_with_the_last_bytes_is_seen() {
    let fixture = Fixture::new();
    const CLIENTS: usize = 50;
    for n in 0..CLIENTS {
        let mut client = connect(&fixture, ProtocolVersion::V311, &n.to_string(), "t-car", GONE);
        client.publish(QoS::AtMostOnce, 0, b"{\"a\":1}");
    }
    fixture.wait_for("all wills", || fixture.values("telemetry", "car", "gone").len() == CLIENTS);
    assert_eq!(fixture.values("telemetry", "car", "a").len(), CLIENTS);
}

#[test]
fn a_will_waits_for_a_store_without_room_and_keeps_its_time() {
    let fixture = Fixture::new();
    fixture.moods.no_new_series.store(true, Ordering::SeqCst);
    for (client_id, token) in [("1", "t-car"), ("2", "t-van")] {
        drop(connect(&fixture, ProtocolVersion::V311, client_id, token, GONE));
    }
    wait_for_farewells(&fixture);
    let room_since = hub::clock::system_now();
    fixture.moods.no_new_series.store(false, Ordering::SeqCst);
    for device in ["car", "van"] {
        fixture.wait_for("the will", || !fixture.values("telemetry", device, "gone").is_empty());
        let series = fixture.store.find_series(&SeriesKey::device("telemetry", device).unwrap()).unwrap();
        let latest = fixture.store.latest(series, None).unwrap();
        assert!(latest[0].ts <= room_since, "{device} was gone before {room_since:?}: {latest:?}");
    }
    assert_eq!(wills_lost(&fixture), 0);
}

#[test]
fn wills_that_wait_have_a_bound_and_those_beyond_it_are_counted() {
    let fixture = Fixture::with(gateway::mqtt::MqttOptions { workers: 1, ..Default::default() });
    fixture.moods.no_new_series.store(true, Ordering::SeqCst);
    // As long as a CONNECT may be; 64 MiB are to wait.
    let long = format!("{{\"gone\":\"{}\"}}", "x".repeat(16_000));
    const CLIENTS: usize = 4_000;
    for n in 0..CLIENTS {
        drop(connect(&fixture, ProtocolVersion::V311, &n.to_string(), "t-car", &long));
    }
    wait_for_farewells(&fixture);
    let lost = wills_lost(&fixture) as usize;
    let bytes = long.len() + TELEMETRY.len() + 1024;
    assert_eq!(CLIENTS - lost, 64 * 1024 * 1024 / bytes);
    fixture.moods.no_new_series.store(false, Ordering::SeqCst);
    fixture.wait_for("the wills", || fixture.values("telemetry", "car", "gone").len() == CLIENTS - lost);
}

#[test]
fn a_door_that_stops_gives_wills_a_last_chance() {
    for has_room in [true, false] {
        let mut fixture = Fixture::new();
        fixture.moods.no_new_series.store(true, Ordering::SeqCst);
        drop(connect(&fixture, ProtocolVersion::V311, "1", "t-car", GONE));
        wait_for_farewells(&fixture);
        fixture.moods.no_new_series.store(!has_room, Ordering::SeqCst);
        fixture.door.take().unwrap().stop();
        assert_eq!(fixture.values("telemetry", "car", "gone").len(), usize::from(has_room));
        assert_eq!(wills_lost(&fixture), u64::from(!has_room));
    }
}
