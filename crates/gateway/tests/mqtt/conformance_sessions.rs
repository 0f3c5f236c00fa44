//! Clauses of MQTT about connections and sessions that no other test holds. `docs/protocol/mqtt-conformance.md` lists all.

use gateway::mqtt::MqttOptions;
use wire::mqtt::{
    Ack, Auth, Connect, Disconnect, Packet, Properties, PropertiesBuilder, Property, PropertyId,
    ProtocolVersion, Publish, QoS, ReasonCode, Will, encode,
};

use super::client::{Client, Fixture, Reply};
use super::{EVERY, one_worker, yes};

const V5: ProtocolVersion = ProtocolVersion::V5;
const V311: ProtocolVersion = ProtocolVersion::V311;

fn properties(all: &[Property<'_>]) -> PropertiesBuilder {
    let mut builder = PropertiesBuilder::new();
    for property in all {
        builder.push(*property).unwrap();
    }
    builder
}

/// Connects with properties. Returns the client and the code of CONNACK.
fn connect(fixture: &Fixture, client_id: &str, clean_start: bool, all: &[Property<'_>]) -> (Client, u8) {
    let mut client = fixture.open(V5);
    let properties = properties(all);
    let connect = Connect {
        clean_start,
        username: Some("t-car"),
        properties: properties.as_properties(),
        ..Connect::new(V5, client_id)
    };
    let code = client.connect_with(connect).code;
    (client, code)
}

const HOUR: Property<'static> = Property::FourBytes(PropertyId::SessionExpiryInterval, 3_600);
const OWN: &str = "devices/car/a";

/// A CONNECT in a row of connections of one client: the version, whether it wants a new session, how long the session lives
/// afterwards, and whether CONNACK must say that there is an earlier one.
type Visit = (ProtocolVersion, bool, u32, bool);

#[test]
fn session_present_says_whether_there_is_an_earlier_session() {
    let rows: [&[Visit]; 5] = [
        &[(V311, true, 0, false), (V311, false, 0, false), (V311, false, 0, true), (V311, true, 0, false)],
        // A clean session leaves nothing.
        &[(V311, false, 0, false), (V311, true, 0, false), (V311, false, 0, false)],
        &[(V5, false, 0, false), (V5, false, 0, false)],
        &[
            (V5, true, 3_600, false),
            (V5, false, 3_600, true),
            (V5, false, 0, true),
            (V5, false, 3_600, false),
        ],
        &[(V5, false, 3_600, false), (V5, true, 3_600, false), (V5, false, 0, true)],
    ];
    let fixture = Fixture::new();
    for (number, row) in rows.iter().enumerate() {
        for (visit, (version, clean_start, expiry_s, expected)) in row.iter().enumerate() {
            let expiry = properties(&[Property::FourBytes(PropertyId::SessionExpiryInterval, *expiry_s)]);
            let mut client = fixture.open(*version);
            let plain = Connect::new(*version, "");
            let id = format!("c{number}");
            let ack = client.connect_with(Connect {
                client_id: &id,
                clean_start: *clean_start,
                username: Some("t-car"),
                properties: if *version == V5 { expiry.as_properties() } else { Properties::NONE },
                ..plain
            });
            assert_eq!((ack.code, ack.session_present), (0, *expected), "row {number}, visit {visit}");
            client.send(&Packet::Disconnect(Disconnect::NORMAL));
            assert_eq!(client.next(), Reply::Closed);
        }
    }
    // The first connection is open when the second one takes its identifier.
    for ((version, clean_start, expiry_s), expected) in [
        ((V311, true, 0), false),
        ((V311, false, 0), true),
        ((V5, false, 0), false),
        ((V5, true, 3_600), true),
    ] {
        let expiry = properties(&[Property::FourBytes(PropertyId::SessionExpiryInterval, expiry_s)]);
        let mut first = fixture.open(version);
        let ack = first.connect_with(Connect {
            clean_start,
            username: Some("t-car"),
            properties: if version == V5 { expiry.as_properties() } else { Properties::NONE },
            ..Connect::new(version, "taken")
        });
        assert_eq!(ack.code, 0);
        assert_eq!(first.subscribe(&[(OWN, 1)]), [1]);
        let mut second = fixture.open(version);
        let ack = second.say_hello("taken", "t-car", false);
        assert_eq!((ack.code, ack.session_present), (0, expected), "{version:?} {clean_start} {expiry_s}");
        assert_eq!(second.tell(OWN, "x"), ReasonCode::SUCCESS);
        assert_eq!(second.has_no_message(), !expected, "a session that is present has its subscriptions");
        second.send(&Packet::Disconnect(Disconnect::NORMAL));
        drop(fixture.connect(version, "taken", "t-car"));
    }
    let mut refused = fixture.open(V311);
    let ack = refused.say_hello("c1", "wrong", false);
    assert_eq!((ack.code, ack.session_present), (5, false), "a refusal says nothing about sessions");
}

#[test]
fn a_continued_session_keeps_its_subscriptions_and_a_new_one_has_none() {
    for version in EVERY {
        let fixture = Fixture::new();
        let mut sender = fixture.connect(V5, "sender", "t-car");
        let hello = |clean_start| {
            let mut client = fixture.open(version);
            let expiry = properties(&[HOUR]);
            let code = client
                .connect_with(Connect {
                    clean_start,
                    username: Some("t-car"),
                    properties: if version == V5 { expiry.as_properties() } else { Properties::NONE },
                    ..Connect::new(version, "c")
                })
                .code;
            assert_eq!(code, 0);
            client
        };
        let mut client = hello(false);
        assert_eq!(client.subscribe(&[(OWN, 1)]), [1]);
        // The connection is lost, and messages come meanwhile.
        drop(client);
        assert_eq!(sender.tell(OWN, "1"), ReasonCode::SUCCESS);
        let mut client = hello(false);
        let message = client.message();
        assert_eq!(message.payload, "1");
        client.acknowledge(&message);
        assert_eq!(sender.tell(OWN, "2"), ReasonCode::SUCCESS);
        assert_eq!(client.message().payload, "2", "{version:?}");
        let mut client = hello(true);
        assert_eq!(sender.tell(OWN, "3"), ReasonCode::SUCCESS);
        assert!(client.has_no_message(), "{version:?}: a new session has neither subscriptions nor messages");
    }
}

#[test]
fn an_empty_identifier_gets_a_new_one_each_time() {
    let fixture = Fixture::new();
    let mut assigned = Vec::new();
    for _ in 0..3 {
        let (mut client, code) = connect(&fixture, "", true, &[]);
        assert_eq!(code, 0);
        let term = client.terms.iter().find(|term| term.starts_with("Text(AssignedClientIdentifier"));
        assigned.push(term.unwrap().clone());
        client.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
        assert_eq!(client.next(), yes(1));
    }
    assigned.sort();
    assigned.dedup();
    assert_eq!(assigned.len(), 3, "{assigned:?}");
    let (client, _) = connect(&fixture, "given", true, &[]);
    assert!(!client.terms.iter().any(|term| term.contains("AssignedClientIdentifier")));
    let mut old = fixture.open(V311);
    assert_eq!(old.say_hello("", "t-car", true).code, 0);
}

#[test]
fn the_server_says_its_keep_alive_where_it_is_another() {
    let fixture = Fixture::with(MqttOptions { keep_alive_max_s: 1, ..MqttOptions::default() });
    for (version, asked, told) in [
        (V5, 0, Some("TwoBytes(ServerKeepAlive, 1)")),
        (V5, 30, Some("TwoBytes(ServerKeepAlive, 1)")),
        (V5, 1, None),
        (V311, 30, None),
    ] {
        let mut client = fixture.open(version);
        let connect = Connect::new(version, "c");
        let connect = Connect { keep_alive_s: asked, username: Some("t-car"), ..connect };
        assert_eq!(client.connect_with(connect).code, 0);
        let found = client.terms.iter().find(|term| term.contains("ServerKeepAlive"));
        assert_eq!(found.map(String::as_str), told, "{version:?} {asked}");
        if version == V5 {
            let reason = ReasonCode::KEEP_ALIVE_TIMEOUT;
            assert!(matches!(client.next(), Reply::Disconnect(got, _) if got == reason), "{asked}");
        }
    }
}

#[test]
fn no_packet_exceeds_the_maximum_of_the_client() {
    let fixture = Fixture::new();
    for most in (2..160).step_by(3) {
        let size = Property::FourBytes(PropertyId::MaximumPacketSize, most);
        let mut client = fixture.open(V5);
        let properties = properties(&[size]);
        let mut bytes = Vec::new();
        let hello = Connect {
            username: Some("t-car"),
            properties: properties.as_properties(),
            ..Connect::new(V5, "c")
        };
        encode(&Packet::Connect(hello), V5, &mut bytes).unwrap();
        let filters = wire::mqtt::Subscribe::layout(&[
            wire::mqtt::Filter { topic: "devices/car/#", options: 0 },
            wire::mqtt::Filter { topic: "forbidden", options: 0 },
        ]);
        let filters = filters.unwrap();
        let unsubscribed = wire::mqtt::Unsubscribe::layout(&["a", "b", "c"]).unwrap();
        let large = "x".repeat(most as usize);
        let message =
            |topic, qos, payload| Publish { packet_id: Some(5), ..Publish::new(topic, qos, payload) };
        for packet in [
            Packet::Subscribe(wire::mqtt::Subscribe::new(1, Properties::NONE, &filters)),
            Packet::Unsubscribe(wire::mqtt::Unsubscribe::new(2, Properties::NONE, &unsubscribed)),
            Packet::Publish(message("forbidden", QoS::AtLeastOnce, b"x")),
            Packet::Publish(message("forbidden", QoS::ExactlyOnce, b"x")),
            Packet::Publish(message(OWN, QoS::AtLeastOnce, large.as_bytes())),
            Packet::Publish(message(OWN, QoS::AtLeastOnce, b"y")),
            Packet::PubRel(Ack::success(9)),
            Packet::PingReq,
        ] {
            encode(&packet, V5, &mut bytes).unwrap();
        }
        client.send_bytes(&bytes);
        // The second answer comes after the acks of the first pass.
        client.wait_for_pongs(1);
        client.send(&Packet::PingReq);
        client.wait_for_pongs(2);
        // A protocol error, which is answered with DISCONNECT.
        client.send(&Packet::ConnAck(wire::mqtt::ConnAck {
            session_present: false,
            code: 0,
            properties: Properties::NONE,
        }));
        let received = client.rest();
        assert!(received.iter().all(|packet| packet.len() <= most as usize), "{most}: {received:02x?}");
        let has = |kind: u8| received.iter().any(|packet| packet[0] >> 4 == kind);
        // CONNACK and PUBACK have at least 5 and 4 bytes, DISCONNECT has 2 or more.
        assert_eq!((has(2), has(4)), (most >= 5, most >= 4), "{most}: {received:02x?}");
        assert_eq!(has(14), most >= 3, "{most}: {received:02x?}");
    }
}

#[test]
fn what_follows_a_refused_connect_has_no_effect() {
    let fixture = Fixture::new();
    for version in [V311, V5] {
        let mut client = fixture.open(version);
        let mut bytes = Vec::new();
        encode(
            &Packet::Connect(Connect { username: Some("wrong"), ..Connect::new(version, "c") }),
            version,
            &mut bytes,
        )
        .unwrap();
        let message = Publish::new("v1/devices/me/telemetry", QoS::AtMostOnce, b"{\"a\":1}");
        encode(&Packet::Publish(message), version, &mut bytes).unwrap();
        client.connect_with_bytes(&bytes);
        assert!(matches!(client.next(), Reply::ConnAck { session_present: false, code } if code != 0));
        assert_eq!(client.next(), Reply::Closed, "one CONNACK, and no DISCONNECT before an accepted one");
    }
    assert!(fixture.values("telemetry", "car", "a").is_empty());
}

#[test]
fn an_authentication_method_is_refused_and_auth_is_an_error() {
    let fixture = Fixture::new();
    let (mut client, code) =
        connect(&fixture, "c", true, &[Property::Text(PropertyId::AuthenticationMethod, "SCRAM-SHA-1")]);
    assert_eq!(code, ReasonCode::BAD_AUTHENTICATION_METHOD.0);
    assert!(client.terms.iter().all(|term| !term.contains("AuthenticationMethod")));
    assert_eq!(client.next(), Reply::Closed);
    let mut plain = fixture.connect(V5, "c", "t-car");
    let method = properties(&[Property::Text(PropertyId::AuthenticationMethod, "SCRAM-SHA-1")]);
    let auth = Auth { reason: ReasonCode(0x19), properties: method.as_properties() };
    plain.send(&Packet::Auth(auth));
    assert!(matches!(plain.next(), Reply::Disconnect(ReasonCode::PROTOCOL_ERROR, Some(_))));
    assert_eq!(plain.next(), Reply::Closed);
}

#[test]
fn a_client_gets_no_response_information_and_an_expiry_may_not_appear_in_disconnect() {
    let fixture = Fixture::new();
    for asked in [0, 1] {
        let ask = Property::Byte(PropertyId::RequestResponseInformation, asked);
        let (client, code) = connect(&fixture, "c", true, &[ask]);
        assert!(code == 0 && !client.terms.iter().any(|term| term.contains("ResponseInformation")));
    }
    for (in_connect, reason) in [(None, Some(ReasonCode::PROTOCOL_ERROR)), (Some(HOUR), None)] {
        let (mut client, _) = connect(&fixture, "d", true, in_connect.as_slice());
        let expiry = properties(&[Property::FourBytes(PropertyId::SessionExpiryInterval, 60)]);
        let disconnect = Disconnect { properties: expiry.as_properties(), ..Disconnect::NORMAL };
        client.send(&Packet::Disconnect(disconnect));
        let last = match client.next() {
            Reply::Disconnect(got, _) => Some(got),
            Reply::Closed => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(last, reason);
    }
}

#[test]
fn a_will_has_the_retain_flag_and_the_properties_that_the_client_gave_it() {
    let fixture = Fixture::with(one_worker());
    let mut watcher = fixture.connect(V5, "watcher", "t-car");
    assert_eq!(watcher.subscribe(&[("devices/car/#", 1)]), [1]);
    let pairs = [("z", "1"), ("a", "2"), ("z", "1")];
    let mut given = vec![Property::Text(PropertyId::ContentType, "text/plain")];
    given.extend(pairs.map(|(key, value)| Property::Pair(PropertyId::UserProperty, key, value)));
    for retain in [false, true] {
        let will = properties(&given);
        let mut dying = fixture.open(V5);
        let connect = Connect {
            username: Some("t-car"),
            will: Some(Will {
                qos: QoS::AtLeastOnce,
                retain,
                properties: will.as_properties(),
                topic: "devices/car/will",
                payload: b"bye",
            }),
            ..Connect::new(V5, "dying")
        };
        assert_eq!(dying.connect_with(connect).code, 0);
        drop(dying);
        let message = watcher.message();
        watcher.acknowledge(&message);
        assert_eq!((message.payload.as_str(), message.retain), ("bye", false));
        let expected: Vec<String> = given.iter().map(|property| format!("{property:?}")).collect();
        assert_eq!(message.properties, expected);
        let mut late = fixture.connect(V5, "late", "t-car");
        assert_eq!(late.subscribe(&[("devices/car/will", 0)]), [0]);
        assert_eq!(late.has_no_message(), !retain, "retain {retain}");
    }
}

#[test]
fn a_will_waits_for_its_delay_and_for_the_client() {
    let fixture = Fixture::with(one_worker());
    let mut watcher = fixture.connect(V5, "watcher", "t-car");
    assert_eq!(watcher.subscribe(&[("devices/car/#", 0)]), [0]);
    let dying = |delay_s: u32, clean_start: bool, topic: &str| {
        let will = properties(&[Property::FourBytes(PropertyId::WillDelayInterval, delay_s)]);
        let expiry = properties(&[HOUR]);
        let mut client = fixture.open(V5);
        let connect = Connect {
            clean_start,
            username: Some("t-car"),
            properties: expiry.as_properties(),
            will: Some(Will {
                qos: QoS::AtMostOnce,
                retain: false,
                properties: will.as_properties(),
                topic,
                payload: b"bye",
            }),
            ..Connect::new(V5, "dying")
        };
        assert_eq!(client.connect_with(connect).code, 0);
        client
    };
    drop(dying(2, true, "devices/car/1"));
    // The client comes back before the delay has passed: no will.
    let mut back = dying(0, false, "devices/car/2");
    // A normal DISCONNECT removes the will, one with 0x04 asks for it.
    back.send(&Packet::Disconnect(Disconnect::NORMAL));
    assert_eq!(back.next(), Reply::Closed);
    let mut asks = dying(0, false, "devices/car/3");
    asks.send(&Packet::Disconnect(Disconnect {
        reason: ReasonCode::DISCONNECT_WITH_WILL,
        ..Disconnect::NORMAL
    }));
    assert_eq!(asks.next(), Reply::Closed);
    assert_eq!(watcher.message().topic, "devices/car/3");
    // Another will of one second comes after the time of the first one.
    drop(dying(3, false, "devices/car/4"));
    assert_eq!(watcher.message().topic, "devices/car/4", "the first will is not published");
}
