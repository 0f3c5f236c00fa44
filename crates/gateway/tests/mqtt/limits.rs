//! The limits of the door: connections at once, of one address, in a second, and messages in a second.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use gateway::door::DoorLimits;
use gateway::mqtt::MqttOptions;
use wire::mqtt::{ConnectReturnCode, ProtocolVersion, QoS, ReasonCode};

use super::client::{Fixture, Reply};
use super::yes;

fn with_limits(change: impl FnOnce(&mut DoorLimits)) -> Fixture {
    let mut options = MqttOptions::default();
    change(&mut options.limits);
    Fixture::with(options)
}

fn refusals(fixture: &Fixture, reason: &str) -> bool {
    let line = format!(r#"tacho_refusals_total{{door="mqtt",reason="{reason}"}}"#);
    fixture.metrics().contains(&line)
}

/// The code of the CONNACK that refuses a new client.
fn refused_with(fixture: &Fixture, version: ProtocolVersion) -> u8 {
    let mut client = fixture.open(version);
    let code = client.say_hello("late", "t-car", true).code;
    assert_eq!(client.next(), Reply::Closed);
    code
}

#[test]
fn a_connection_over_the_maximum_hears_why_and_the_next_one_has_room() {
    let fixture = with_limits(|limits| *limits = DoorLimits::of_connections(2));
    let _first = fixture.connect(ProtocolVersion::V5, "1", "t-car");
    let second = fixture.connect(ProtocolVersion::V5, "2", "t-van");
    assert_eq!(refused_with(&fixture, ProtocolVersion::V5), ReasonCode::QUOTA_EXCEEDED.0);
    assert_eq!(refused_with(&fixture, ProtocolVersion::V311), ConnectReturnCode::SERVER_UNAVAILABLE);
    let metrics = fixture.metrics();
    for line in [
        r#"tacho_refusals_total{door="mqtt",reason="connections_max"} 2"#,
        r#"tacho_connections{door="mqtt"} 2"#,
        r#"tacho_connections_opened_total{door="mqtt"} 2"#,
        r#"tacho_door_limit{door="mqtt",limit="connections_max"} 2"#,
    ] {
        assert!(metrics.contains(line), "{line} is missing in:\n{metrics}");
    }
    drop(second);
    // The server may see the close later.
    fixture.wait_for("room", || fixture.metrics().contains(r#"tacho_connections{door="mqtt"} 1"#));
    fixture.connect(ProtocolVersion::V5, "3", "t-van");
}

#[test]
fn an_address_has_its_share() {
    let fixture = with_limits(|limits| limits.connections_per_address_max = 1);
    let _first = fixture.connect(ProtocolVersion::V311, "1", "t-car");
    assert_eq!(refused_with(&fixture, ProtocolVersion::V5), ReasonCode::QUOTA_EXCEEDED.0);
    assert!(refusals(&fixture, "connections_per_address_max"));
}

#[test]
fn connections_that_come_too_fast_are_refused() {
    let fixture = with_limits(|limits| limits.connections_per_second_max = NonZeroU32::new(1));
    // A slow machine may take longer than a second for a connection.
    fixture.wait_for("a refusal", || {
        let code = fixture.open(ProtocolVersion::V5).say_hello("fast", "t-car", true).code;
        assert!([0, ReasonCode::CONNECTION_RATE_EXCEEDED.0].contains(&code), "{code:#x}");
        code != 0
    });
    assert!(refusals(&fixture, "connections_per_second_max"));
}

/// A client that sends faster than the limit waits: no message is refused, and other packets are answered meanwhile.
#[test]
fn messages_above_the_rate_wait_and_none_is_lost() {
    let fixture = with_limits(|limits| limits.requests_per_second_max = NonZeroU32::new(2));
    let mut fast = fixture.connect(ProtocolVersion::V5, "fast", "t-car");
    let mut other = fixture.connect(ProtocolVersion::V311, "other", "t-van");
    let began = Instant::now();
    for packet_id in 1..=5 {
        fast.publish(QoS::AtLeastOnce, packet_id, format!("{{\"n\":{packet_id}}}").as_bytes());
    }
    assert!(other.is_silent(), "a ping is answered while messages wait");
    other.publish(QoS::AtLeastOnce, 9, b"{\"n\":9}");
    for packet_id in 1..=5 {
        assert_eq!(fast.next(), yes(packet_id));
    }
    assert_eq!(other.next(), yes(9));
    // Two messages pass at once, four wait for half a second each. The bound holds on a machine of any speed.
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(fixture.values("telemetry", "car", "n").len(), 5);
    assert!(!refusals(&fixture, "requests_per_second_max"));
}
