//! The PROXY protocol: the address of a client behind a load balancer.

use std::time::Duration;

use gateway::door::Networks;
use gateway::mqtt::MqttOptions;
use wire::mqtt::{ProtocolVersion, QoS, ReasonCode};

use super::client::{Client, Fixture, Reply};
use super::yes;

const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00";

/// A door for which this machine is a load balancer.
fn behind_balancer(change: impl FnOnce(&mut MqttOptions)) -> Fixture {
    let proxies = Networks::parse(["127.0.0.0/8"]).unwrap();
    let mut options = MqttOptions { proxies, ..MqttOptions::default() };
    change(&mut options);
    Fixture::with(options)
}

fn open_with(fixture: &Fixture, header: &[u8]) -> Client {
    let mut client = fixture.open(ProtocolVersion::V5);
    client.send_bytes(header);
    client
}

fn v1(address: &str) -> Vec<u8> {
    format!("PROXY TCP4 {address} 192.0.2.1 50000 1883\r\n").into_bytes()
}

/// Version 2 with an extension.
fn v2(address: [u8; 4]) -> Vec<u8> {
    let (addresses, ports) = ([address, [192, 0, 2, 1]].concat(), [0xC3, 0x50, 0x07, 0x5B]);
    [b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x10".as_slice(), &addresses, &ports, b"\x04\x00\x01x"].concat()
}

fn refusals(fixture: &Fixture, reason: &str, number: usize) -> bool {
    let line = format!(r#"tacho_refusals_total{{door="mqtt",reason="{reason}"}} {number}"#);
    fixture.metrics().contains(&line)
}

#[test]
fn the_limit_for_one_address_counts_the_announced_clients() {
    let fixture = behind_balancer(|options| options.limits.connections_per_address_max = 1);
    let mut first = open_with(&fixture, &v1("203.0.113.1"));
    assert_eq!(first.say_hello("1", "t-car", true).code, 0);
    let mut second = open_with(&fixture, &v2([203, 0, 113, 2]));
    assert_eq!(second.say_hello("2", "t-van", true).code, 0);
    let mut same = open_with(&fixture, &v2([203, 0, 113, 1]));
    assert_eq!(same.say_hello("3", "t-van", true).code, ReasonCode::QUOTA_EXCEEDED.0);
    assert!(refusals(&fixture, "connections_per_address_max", 1));
    first.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(first.next(), yes(1));
}

#[test]
fn a_header_may_come_byte_by_byte_and_a_balancer_may_speak_for_itself() {
    let fixture = behind_balancer(|_| {});
    for header in [v1("203.0.113.1"), v2([203, 0, 113, 1]), V2_LOCAL.to_vec(), b"PROXY UNKNOWN\r\n".to_vec()]
    {
        let mut client = fixture.open(ProtocolVersion::V5);
        client.socket.set_nodelay(true).unwrap();
        for byte in header {
            client.send_bytes(&[byte]);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(client.say_hello("c", "t-car", true).code, 0);
    }
}

#[test]
fn a_balancer_without_a_header_is_closed_and_counted() {
    let fixture = behind_balancer(|_| {});
    for (number, begin) in
        [b"\x10\x0C\0\x04MQTT".as_slice(), b"PROXY TCP9\r\n......", b"GET / HTTP/1.1\r\n\r\n"]
            .into_iter()
            .enumerate()
    {
        assert_eq!(open_with(&fixture, begin).next(), Reply::Closed);
        assert!(refusals(&fixture, "proxy_protocol", number + 1), "{}", begin.escape_ascii());
    }
}

#[test]
fn a_balancer_that_sends_nothing_is_closed() {
    let fixture = behind_balancer(|options| options.connect_timeout_s = 1);
    assert_eq!(open_with(&fixture, b"PROXY TCP4 203").next(), Reply::Closed);
    assert!(refusals(&fixture, "connect_timeout", 1));
}

#[test]
fn a_header_of_a_stranger_is_not_believed() {
    let proxies = Networks::parse(["192.0.2.0/24"]).unwrap();
    let fixture = Fixture::with(MqttOptions { proxies, ..MqttOptions::default() });
    fixture.connect(ProtocolVersion::V5, "direct", "t-car");
    assert_eq!(open_with(&fixture, &v1("192.0.2.7")).next(), Reply::Closed);
    assert!(refusals(&fixture, "malformed", 1));
}
