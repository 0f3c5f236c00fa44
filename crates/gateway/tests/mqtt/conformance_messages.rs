//! Clauses of MQTT about messages and subscriptions that no other test holds. `docs/protocol/mqtt-conformance.md` lists all.

use wire::mqtt::{
    Ack, Connect, Packet, Properties, PropertiesBuilder, Property, PropertyId, ProtocolVersion, Publish, QoS,
    ReasonCode,
};

use super::EVERY;
use super::client::{Client, Fixture, Message, Reply};

const V5: ProtocolVersion = ProtocolVersion::V5;
const A: &str = "devices/car/a";

// Options of a subscription.
const NO_LOCAL: u8 = 1 << 2;
const AS_PUBLISHED: u8 = 1 << 3;
const IF_NEW: u8 = 1 << 4;
const NEVER: u8 = 2 << 4;

fn properties(all: &[Property<'_>]) -> PropertiesBuilder {
    let mut builder = PropertiesBuilder::new();
    for property in all {
        builder.push(*property).unwrap();
    }
    builder
}

fn retained<'a>(topic: &'a str, payload: &'a [u8]) -> Publish<'a> {
    Publish { retain: true, ..Publish::new(topic, QoS::AtLeastOnce, payload) }
}

/// Connects a client of the device `car` whose session outlives the connection.
fn continued(fixture: &Fixture, version: ProtocolVersion, client_id: &str, more: &[Property<'_>]) -> Client {
    let mut all = vec![Property::FourBytes(PropertyId::SessionExpiryInterval, 3_600)];
    all.extend(more);
    let properties = properties(&all);
    let mut client = fixture.open(version);
    let connect = Connect {
        clean_start: false,
        username: Some("t-car"),
        properties: if version == V5 { properties.as_properties() } else { Properties::NONE },
        ..Connect::new(version, client_id)
    };
    assert_eq!(client.connect_with(connect).code, 0);
    client
}

/// Payloads and retain flags of the messages that come before the answer to a ping.
fn taken(client: &mut Client) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    while !client.has_no_message() {
        let message = client.message();
        if message.qos == QoS::AtLeastOnce {
            client.acknowledge(&message);
        }
        found.push((message.payload, message.retain));
    }
    found
}

#[test]
fn the_last_retained_message_of_a_topic_is_kept_and_an_empty_one_removes_it() {
    let fixture = Fixture::new();
    for version in EVERY {
        let mut sender = fixture.connect(version, "sender", "t-car");
        let late = |expected: &[&str]| {
            let mut client = fixture.connect(version, "late", "t-car");
            assert_eq!(client.subscribe(&[(A, 1)]), [1]);
            let expected: Vec<_> = expected.iter().map(|payload| ((*payload).to_owned(), true)).collect();
            assert_eq!(taken(&mut client), expected, "{version:?}");
        };
        sender.tell_with(&retained(A, b"1"));
        sender.tell(A, "not retained");
        late(&["1"]);
        // A message of QoS 0 replaces one of QoS 1.
        let zero = Publish { qos: QoS::AtMostOnce, ..retained(A, b"2") };
        sender.send(&Packet::Publish(zero));
        assert!(sender.is_silent());
        late(&["2"]);
        let mut watcher = fixture.connect(version, "watcher", "t-car");
        assert_eq!(watcher.subscribe(&[(A, 1)]), [1]);
        assert_eq!(taken(&mut watcher).len(), 1);
        sender.tell_with(&retained(A, b""));
        assert_eq!(taken(&mut watcher), [(String::new(), false)], "it is sent like any other");
        late(&[]);
    }
}

#[test]
fn retain_handling_and_retain_as_published_do_what_they_say() {
    let fixture = Fixture::new();
    let mut sender = fixture.connect(V5, "sender", "t-car");
    sender.tell_with(&retained(A, b"kept"));
    // Options, whether the first and the second SUBSCRIBE get the retained message, the retain flag of a later one.
    for (options, first, second, flag) in [
        (0, 1, 1, false),
        (IF_NEW, 1, 0, false),
        (NEVER, 0, 0, false),
        (AS_PUBLISHED, 1, 1, true),
        (AS_PUBLISHED | NEVER, 0, 0, true),
    ] {
        let mut client = fixture.connect(V5, "c", "t-car");
        for (round, expected) in [first, second].into_iter().enumerate() {
            assert_eq!(client.subscribe(&[(A, options | 1)]), [1]);
            let expected = vec![("kept".to_owned(), true); expected];
            assert_eq!(taken(&mut client), expected, "options {options:#x}, round {round}");
        }
        sender.tell_with(&retained(A, b"kept"));
        sender.tell(A, "plain");
        let expected = [("kept".to_owned(), flag), ("plain".to_owned(), false)];
        assert_eq!(
            taken(&mut client),
            expected,
            "options {options:#x}; the subscription was replaced, not added"
        );
    }
    // A shared subscription gets no retained messages.
    let mut shared = fixture.connect(V5, "shared", "t-car");
    assert_eq!(shared.subscribe(&[("$share/g/devices/car/a", 1)]), [1]);
    assert!(shared.has_no_message());
}

#[test]
fn overlapping_subscriptions_give_one_message_with_the_highest_qos_and_all_identifiers() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(V5, "c", "t-car");
    for (filter, qos, identifier) in [("devices/car/#", 0, 7), ("devices/car/+", 2, 9), (A, 1, 300)] {
        let identifier = properties(&[Property::VariableInt(PropertyId::SubscriptionIdentifier, identifier)]);
        assert_eq!(client.subscribe_with(&[(filter, qos)], identifier.as_properties()), [qos]);
    }
    assert_eq!(client.subscribe(&[("+/car/a", 0)]), [0x87], "a filter that is not allowed changes nothing");
    for (sent, received) in [
        (QoS::AtMostOnce, QoS::AtMostOnce),
        (QoS::AtLeastOnce, QoS::AtLeastOnce),
        (QoS::ExactlyOnce, QoS::ExactlyOnce),
    ] {
        client.send(&Packet::Publish(Publish { packet_id: Some(5), ..Publish::new(A, sent, b"x") }));
        let mut message = client.message_among_answers();
        message.identifiers.sort_unstable();
        assert_eq!((message.qos, message.identifiers), (received, vec![7, 9, 300]));
    }
    let mut low = fixture.connect(V5, "low", "t-car");
    assert_eq!(low.subscribe(&[(A, 0)]), [0]);
    client.send(&Packet::Publish(Publish { packet_id: Some(6), ..Publish::new(A, QoS::ExactlyOnce, b"x") }));
    let message = low.message();
    assert_eq!((message.qos, message.identifiers.len()), (QoS::AtMostOnce, 0), "the QoS of the subscription");
}

#[test]
fn a_client_does_not_get_its_own_messages_with_no_local() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(V5, "c", "t-car");
    assert_eq!(client.subscribe(&[(A, NO_LOCAL | 1)]), [1]);
    assert_eq!(client.tell(A, "own"), ReasonCode::SUCCESS);
    let mut other = fixture.connect(V5, "other", "t-car");
    assert_eq!(other.tell(A, "other"), ReasonCode::SUCCESS);
    assert_eq!(taken(&mut client), [("other".to_owned(), false)]);
}

#[test]
fn answers_to_several_filters_keep_their_order_and_a_filter_of_unsubscribe_is_compared_exactly() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(V5, "c", "t-car");
    let filters =
        [("devices/car/1", 2), ("devices/van/1", 1), ("devices/car/2", 0), ("#", 0), ("devices/car/+", 1)];
    assert_eq!(client.subscribe(&filters), [2, 0x87, 0, 0x87, 1]);
    assert_eq!(
        client.unsubscribe(&["devices/car/#", "devices/car/2", "devices/car/3", "devices/car/+"]),
        [0x11, 0, 0x11, 0]
    );
    assert_eq!(client.tell("devices/car/2", "no"), ReasonCode::SUCCESS);
    assert_eq!(client.tell("devices/car/1", "yes"), ReasonCode::SUCCESS);
    assert_eq!(taken(&mut client), [("yes".to_owned(), false)]);
    let mut old = fixture.connect(ProtocolVersion::V311, "old", "t-car");
    assert_eq!(old.subscribe(&filters), [2, 0x80, 0, 0x80, 1]);
    assert_eq!(old.unsubscribe(&["never"]), [0_u8; 0], "3.1.1 has no codes, and an answer all the same");
}

#[test]
fn what_was_sent_before_unsubscribe_is_completed() {
    let fixture = Fixture::new();
    let mut client = continued(&fixture, V5, "c", &[]);
    assert_eq!(client.subscribe(&[(A, 2)]), [2]);
    let mut sender = fixture.connect(V5, "sender", "t-car");
    sender.send(&Packet::Publish(Publish { packet_id: Some(5), ..Publish::new(A, QoS::ExactlyOnce, b"x") }));
    let message = client.message();
    assert_eq!(client.unsubscribe(&[A]), [0]);
    let id = message.packet_id.unwrap();
    client.send(&Packet::PubRec(Ack::success(id)));
    assert_eq!(client.answer(), Reply::PubRel(id, ReasonCode::SUCCESS));
    client.send(&Packet::PubComp(Ack::success(id)));
    assert!(client.has_no_message());
}

/// A client that takes two messages at a time.
#[test]
fn no_more_messages_than_the_receive_maximum_are_unacknowledged() {
    let fixture = Fixture::new();
    let mut client = continued(&fixture, V5, "c", &[Property::TwoBytes(PropertyId::ReceiveMaximum, 2)]);
    assert_eq!(client.subscribe(&[(A, 2)]), [2]);
    let mut sender = fixture.connect(V5, "sender", "t-car");
    for n in 0..5 {
        let qos = if n % 2 == 0 { QoS::AtLeastOnce } else { QoS::ExactlyOnce };
        let payload = n.to_string();
        let publish = Publish { packet_id: Some(n + 1), ..Publish::new(A, qos, payload.as_bytes()) };
        sender.send(&Packet::Publish(publish));
        assert!(matches!(sender.next(), Reply::PubAck(..) | Reply::PubRec(..)));
    }
    let (first, second) = (client.message(), client.message());
    assert_eq!((first.payload.as_str(), second.payload.as_str()), ("0", "1"));
    assert!(client.has_no_message(), "a ping is answered meanwhile");
    assert_eq!(client.subscribe(&[("devices/car/b", 0)]), [0], "and so are other packets");
    client.acknowledge(&first);
    let third = client.message();
    assert_eq!(third.payload, "2");
    // PUBREC does not free a place, PUBCOMP does.
    let id = second.packet_id.unwrap();
    client.send(&Packet::PubRec(Ack::success(id)));
    assert_eq!(client.answer(), Reply::PubRel(id, ReasonCode::SUCCESS));
    assert!(client.has_no_message());
    client.send(&Packet::PubComp(Ack::success(id)));
    let fourth = client.message();
    assert_eq!(fourth.payload, "3");
    // A refusal frees one too, and the message does not come again.
    let refusal = Ack { reason: ReasonCode::QUOTA_EXCEEDED, ..Ack::success(fourth.packet_id.unwrap()) };
    client.send(&Packet::PubRec(refusal));
    let fifth = client.message();
    assert_eq!(fifth.payload, "4");
    let refusal = Ack { reason: ReasonCode::QUOTA_EXCEEDED, ..Ack::success(fifth.packet_id.unwrap()) };
    client.send(&Packet::PubAck(refusal));
    client.acknowledge(&third);
    assert!(client.has_no_message());
    drop(client);
    let mut back = continued(&fixture, V5, "c", &[]);
    assert!(back.has_no_message(), "nothing is left to deliver");
}

#[test]
fn unacknowledged_messages_and_releases_come_again_in_their_order() {
    for version in EVERY {
        let fixture = Fixture::new();
        let mut client = continued(&fixture, version, "c", &[]);
        assert_eq!(client.subscribe(&[(A, 2)]), [2]);
        let mut sender = fixture.connect(version, "sender", "t-car");
        for n in 1..=4 {
            let qos = if n == 2 { QoS::ExactlyOnce } else { QoS::AtLeastOnce };
            let payload = n.to_string();
            // The DUP flag of the publisher is not that of the server.
            let publish =
                Publish { dup: true, packet_id: Some(n), ..Publish::new(A, qos, payload.as_bytes()) };
            sender.send(&Packet::Publish(publish));
            assert!(matches!(sender.next(), Reply::PubAck(..) | Reply::PubRec(..)));
        }
        let sent: Vec<Message> = (0..4).map(|_| client.message()).collect();
        assert!(sent.iter().all(|message| !message.dup), "{sent:?}");
        client.acknowledge(&sent[0]);
        let id = sent[1].packet_id.unwrap();
        client.send(&Packet::PubRec(Ack::success(id)));
        assert_eq!(client.answer(), Reply::PubRel(id, ReasonCode::SUCCESS));
        assert!(client.has_no_message(), "nothing comes again while the connection lasts");
        drop(client);
        let mut back = continued(&fixture, version, "c", &[]);
        // The message of QoS 2 is released again, not sent; the others have their identifiers and DUP.
        assert_eq!(back.next(), Reply::PubRel(id, ReasonCode::SUCCESS));
        for expected in &sent[2..] {
            let again = back.message();
            assert_eq!(again, Message { dup: true, ..expected.clone() }, "{version:?}");
            back.acknowledge(&again);
        }
        back.send(&Packet::PubComp(Ack::success(id)));
        assert!(back.has_no_message());
        // The identifier is free again: the next message of the publisher under it is a new one.
        sender.send(&Packet::PubRel(Ack::success(2)));
        assert_eq!(sender.next(), Reply::PubComp(2, ReasonCode::SUCCESS));
        sender.send(&Packet::Publish(Publish {
            packet_id: Some(2),
            ..Publish::new(A, QoS::ExactlyOnce, b"5")
        }));
        assert!(matches!(sender.next(), Reply::PubRec(2, ..)));
        assert_eq!(back.message().payload, "5");
    }
}

#[test]
fn receivers_get_the_properties_of_a_message_unaltered_and_in_their_order() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(V5, "c", "t-car");
    assert_eq!(client.subscribe(&[(A, 1)]), [1]);
    let given = [
        Property::Byte(PropertyId::PayloadFormatIndicator, 1),
        Property::Text(PropertyId::ContentType, "\u{feff}text/plain; ü"),
        Property::Text(PropertyId::ResponseTopic, "devices/car/answers"),
        Property::Binary(PropertyId::CorrelationData, &[0, 255, 7]),
        Property::Pair(PropertyId::UserProperty, "z", "1"),
        Property::Pair(PropertyId::UserProperty, "a", ""),
        Property::Pair(PropertyId::UserProperty, "z", "1"),
    ];
    let builder = properties(&given);
    let publish = Publish {
        properties: builder.as_properties(),
        ..Publish::new(A, QoS::AtLeastOnce, "\u{feff}ü".as_bytes())
    };
    assert_eq!(client.tell_with(&publish), ReasonCode::SUCCESS);
    let message = client.message();
    assert_eq!(message.properties, given.map(|property| format!("{property:?}")));
    assert_eq!(message.payload, "\u{feff}ü");
    client.acknowledge(&message);
    // Topics are compared as they are: neither case nor composition of letters is changed.
    for (filter, topic) in
        [("devices/car/É", "devices/car/é"), ("devices/car/\u{e9}", "devices/car/e\u{301}")]
    {
        assert_eq!(client.subscribe(&[(filter, 1)]), [1]);
        assert_eq!(client.tell(topic, "another"), ReasonCode::SUCCESS);
        assert!(client.has_no_message(), "{filter} {topic}");
    }
    assert_eq!(client.tell("devices/car/É", "the same"), ReasonCode::SUCCESS);
    let message = client.message();
    assert_eq!(message.payload, "the same");
}

#[test]
fn a_negative_pubrec_of_the_server_ends_the_exchange() {
    let fixture = Fixture::new();
    let mut client = fixture.connect(V5, "c", "t-car");
    let publish =
        |topic: &'static str| Publish { packet_id: Some(9), ..Publish::new(topic, QoS::ExactlyOnce, b"1") };
    client.send(&Packet::Publish(publish("forbidden")));
    assert!(matches!(client.next(), Reply::PubRec(9, ReasonCode::NOT_AUTHORIZED, Some(_))));
    // The identifier is free: this is a new message.
    assert_eq!(client.subscribe(&[(A, 0)]), [0]);
    for _ in 0..2 {
        client.send(&Packet::Publish(publish(A)));
        assert_eq!(client.answer(), Reply::PubRec(9, ReasonCode::SUCCESS, None));
    }
    assert_eq!(taken(&mut client).len(), 1, "a repetition before PUBREL is not delivered again");
    // A message that has expired is received like any other.
    let expired = properties(&[Property::FourBytes(PropertyId::MessageExpiryInterval, 0)]);
    let publish = Publish { packet_id: Some(8), properties: expired.as_properties(), ..publish(A) };
    client.send(&Packet::Publish(publish));
    assert_eq!(client.answer(), Reply::PubRec(8, ReasonCode::SUCCESS, None));
    client.send(&Packet::PubRel(Ack::success(8)));
    assert_eq!(client.answer(), Reply::PubComp(8, ReasonCode::SUCCESS));
    assert!(client.has_no_message());
    client.send(&Packet::PubRel(Ack::success(10)));
    assert_eq!(client.answer(), Reply::PubComp(10, ReasonCode::PACKET_IDENTIFIER_NOT_FOUND));
    client.send(&Packet::PubRec(Ack::success(55)));
    assert_eq!(client.answer(), Reply::PubRel(55, ReasonCode::PACKET_IDENTIFIER_NOT_FOUND));
}

#[test]
fn releases_have_the_order_of_the_messages() {
    for version in EVERY {
        let fixture = Fixture::new();
        let mut client = fixture.connect(version, "c", "t-car");
        assert_eq!(client.subscribe(&[(A, 2)]), [2]);
        for packet_id in 1..=3 {
            client.send(&Packet::Publish(Publish {
                packet_id: Some(packet_id),
                ..Publish::new(A, QoS::ExactlyOnce, b"x")
            }));
        }
        let ids: Vec<u16> = (0..3).map(|_| client.message_among_answers().packet_id.unwrap()).collect();
        for id in &ids {
            client.send(&Packet::PubRec(Ack::success(*id)));
        }
        let released = (0..3).map(|_| {
            loop {
                if let Reply::PubRel(id, _) = client.answer() {
                    break id;
                }
            }
        });
        assert_eq!(released.collect::<Vec<_>>(), ids, "{version:?}");
    }
}
