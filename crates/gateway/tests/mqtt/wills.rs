//! Wills: messages that the server publishes when a device disappears.

use std::sync::atomic::Ordering;

use model::Value;
use wire::mqtt::{Connect, Disconnect, Packet, Properties, ProtocolVersion, QoS, Will};

use super::client::{Client, Fixture, Reply, TELEMETRY};
use super::{one_worker, yes};

const GONE: &str = "{\"gone\":true}";

fn connect(fixture: &Fixture, version: ProtocolVersion, client_id: &str, token: &str, will: &str) -> Client {
    let mut client = fixture.open(version);
    let will = Will {
        qos: QoS::AtMostOnce,
        retain: false,
        properties: Properties::NONE,
        topic: TELEMETRY,
        payload: will.as_bytes(),
    };
    let connect = Connect { will: Some(will), username: Some(token), ..Connect::new(version, client_id) };
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
fn a_will_is_stored_only_without_disconnect() {
    let fixture = Fixture::new();
    for (client_id, token, says_goodbye) in [("1", "t-car", true), ("2", "t-van", false)] {
        let mut client = connect(&fixture, ProtocolVersion::V5, client_id, token, GONE);
        if says_goodbye {
            client.send(&Packet::Disconnect(Disconnect::NORMAL));
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
    // One worker. It handles held messages before it publishes wills.
    let fixture = Fixture::with(one_worker());
    fixture.moods.no_new_series.store(true, Ordering::SeqCst);
    drop(connect(&fixture, ProtocolVersion::V311, "1", "t-car", GONE));
    wait_for_farewells(&fixture);
    // The device reconnects. Its message waits as well and is newer than its will.
    let mut back = connect(&fixture, ProtocolVersion::V311, "1", "t-car", GONE);
    back.publish(QoS::AtLeastOnce, 1, b"{\"gone\":false}");
    assert!(back.hears_nothing());
    fixture.moods.no_new_series.store(false, Ordering::SeqCst);
    assert_eq!(back.next(), yes(1));
    fixture.wait_for("the will", || fixture.values("telemetry", "car", "gone").len() == 2);
    assert_eq!(fixture.values("telemetry", "car", "gone"), [Value::Bool(true), Value::Bool(false)]);
    assert_eq!(wills_lost(&fixture), 0);
}

#[test]
fn waiting_wills_are_bounded_and_further_ones_are_counted() {
    for is_known in [false, true] {
        let fixture = Fixture::with(one_worker());
        if is_known {
            let mut client = fixture.connect(ProtocolVersion::V311, "first", "t-car");
            client.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
            assert_eq!(client.next(), yes(1));
            // The worker sees this when a message arrives.
            fixture.store.set_busy(Some("the disk is full"));
            client.publish(QoS::AtMostOnce, 0, b"{\"a\":2}");
            assert!(client.hears_nothing());
        }
        fixture.moods.no_new_series.store(true, Ordering::SeqCst);
        // The longest CONNECT.
        let long = format!("{{\"gone\":\"{}\"}}", "x".repeat(16_000));
        const CLIENTS: usize = 4_200;
        for n in 0..CLIENTS {
            drop(connect(&fixture, ProtocolVersion::V311, &n.to_string(), "t-car", &long));
        }
        wait_for_farewells(&fixture);
        let lost = wills_lost(&fixture) as usize;
        let bytes = long.len() + TELEMETRY.len() + 512;
        let room = 64 * 1024 * 1024 / (bytes + 4)..=64 * 1024 * 1024 / bytes;
        assert!(room.contains(&(CLIENTS - lost)), "{lost} are lost");
        fixture.moods.no_new_series.store(false, Ordering::SeqCst);
        fixture.store.set_busy(None);
        fixture.wait_for("the wills", || fixture.values("telemetry", "car", "gone").len() == CLIENTS - lost);
    }
}

#[test]
fn a_door_that_stops_tries_waiting_wills_once_more() {
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

#[test]
fn a_panic_over_a_will_loses_it_and_nothing_else() {
    let fixture = Fixture::with(one_worker());
    let mut other = fixture.connect(ProtocolVersion::V311, "other", "t-van");
    other.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(other.next(), yes(1));
    fixture.moods.panics_at_series.store(true, Ordering::SeqCst);
    drop(connect(&fixture, ProtocolVersion::V311, "1", "t-car", GONE));
    fixture.wait_for("the loss", || wills_lost(&fixture) == 1);
    fixture.moods.panics_at_series.store(false, Ordering::SeqCst);
    other.publish(QoS::AtLeastOnce, 2, b"{\"a\":2}");
    assert_eq!(other.next(), yes(2));
    assert!(fixture.values("telemetry", "car", "gone").is_empty());
}
