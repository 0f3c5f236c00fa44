//! The door with a store that is busy, full or broken.

use std::sync::atomic::Ordering;

use gateway::mqtt::MqttOptions;
use model::Value;
use model::limits::IngestLimits;
use store::{Maintenance, Ticket, Writer};
use testkit::own_process::{in_own_process, told_before_abort};
use wire::mqtt::{
    Ack, Packet, PropertiesBuilder, Property, PropertyId, ProtocolVersion, Publish, QoS, ReasonCode, encode,
    encode_publish,
};

use super::client::{Client, Fixture, Reply, TELEMETRY};
use super::moody::{LATER, ONE_TOO_MANY};
use super::{EVERY, one_worker, yes};

/// Sends messages in one write, so that they reach the store in one batch.
fn publish_together(client: &mut Client, messages: &[(QoS, u16, &str)]) {
    let mut bytes = Vec::new();
    for (qos, packet_id, payload) in messages {
        let payload = payload.as_bytes();
        encode_publish(TELEMETRY, *qos, *packet_id, payload, client.version, &mut bytes).unwrap();
    }
    client.send_bytes(&bytes);
}

/// A PUBLISH of QoS 1 with a topic alias.
fn aliased(topic: &str, packet_id: u16, payload: &str, version: ProtocolVersion, bytes: &mut Vec<u8>) {
    let mut properties = PropertiesBuilder::new();
    properties.push(Property::TwoBytes(PropertyId::TopicAlias, 3)).unwrap();
    let publish = Publish {
        dup: false,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic,
        packet_id: Some(packet_id),
        properties: properties.as_properties(),
        payload: payload.as_bytes(),
    };
    encode(&Packet::Publish(publish), version, bytes).unwrap();
}

fn taken(packet_id: u16) -> Reply {
    Reply::PubRec(packet_id, ReasonCode::SUCCESS, None)
}

#[test]
fn a_message_that_the_store_refuses_affects_no_other() {
    for version in EVERY {
        let fixture = Fixture::with(one_worker());
        let mut other = fixture.connect(version, "other", "t-van");
        let mut client = fixture.connect(version, "c", "t-car");
        let culprit = format!("{{\"{ONE_TOO_MANY}\": 1}}");
        let messages = [
            (QoS::AtLeastOnce, 1, "{\"a\":1}"),
            (QoS::AtLeastOnce, 2, culprit.as_str()),
            (QoS::ExactlyOnce, 3, culprit.as_str()),
            (QoS::AtMostOnce, 0, culprit.as_str()),
            (QoS::ExactlyOnce, 4, "{\"a\":4}"),
            (QoS::AtLeastOnce, 5, "not json"),
        ];
        publish_together(&mut client, &messages);
        other.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
        assert_eq!(other.next(), yes(1));
        assert_eq!(client.next(), yes(1));
        let refusals = [client.next(), client.next()];
        match version {
            ProtocolVersion::V31 | ProtocolVersion::V311 => assert_eq!(refusals, [yes(2), taken(3)]),
            ProtocolVersion::V5 => {
                let cause = Some("columns of a table is 20001, the limit is 20000".to_owned());
                let code = ReasonCode::QUOTA_EXCEEDED;
                assert_eq!(refusals, [Reply::PubAck(2, code, cause.clone()), Reply::PubRec(3, code, cause)]);
            }
        }
        assert_eq!(client.next(), taken(4));
        assert!(matches!(client.next(), Reply::PubAck(5, ..)));
        // In MQTT 5 the refusal has ended the exchange, in 3.1.1 the PUBREL ends it.
        client.send(&Packet::PubRel(Ack::success(3)));
        let known = match version {
            ProtocolVersion::V31 | ProtocolVersion::V311 => ReasonCode::SUCCESS,
            ProtocolVersion::V5 => ReasonCode::PACKET_IDENTIFIER_NOT_FOUND,
        };
        assert_eq!(client.next(), Reply::PubComp(3, known));
        assert_eq!(fixture.values("telemetry", "car", "a"), [Value::I64(1), Value::I64(4)]);
        let mut kept = fixture.dead_letters("car", "payload");
        kept.sort();
        assert_eq!(kept, ["not json", &culprit, &culprit, &culprit]);
        assert!(fixture.metrics().contains(r#"tacho_refusals_total{door="mqtt",reason="store_limit"} 3"#));
    }
}

#[test]
fn a_refused_message_is_kept_whole_with_the_topic_under_which_it_came() {
    for version in EVERY {
        let fixture = Fixture::with(one_worker());
        let mut client = fixture.connect(version, "c", "t-car");
        let payload = |n: u16| format!("{{ \"{ONE_TOO_MANY}\": {n} }}");
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for (packet_id, topic) in (1..).zip([TELEMETRY, "v2/t", "v2/t/j", TELEMETRY, "v2/t"]) {
            // A message between them is stored.
            let good = format!("{{\"a\":{packet_id}}}");
            encode_publish(topic, QoS::AtMostOnce, 0, good.as_bytes(), version, &mut bytes).unwrap();
            let text = payload(packet_id);
            encode_publish(topic, QoS::AtLeastOnce, packet_id, text.as_bytes(), version, &mut bytes).unwrap();
            expected.push((topic.to_owned(), text));
        }
        if version == ProtocolVersion::V5 {
            for (packet_id, topic) in [(6, "v2/t"), (7, "")] {
                aliased(topic, packet_id, &payload(packet_id), version, &mut bytes);
                expected.push(("v2/t".to_owned(), payload(packet_id)));
            }
        }
        // The last message comes in two pieces.
        let whole = bytes.len() - 5;
        client.send_bytes(&bytes[..whole]);
        for _ in 1..expected.len() {
            assert!(matches!(client.next(), Reply::PubAck(..)));
        }
        client.send_bytes(&bytes[whole..]);
        assert!(matches!(client.next(), Reply::PubAck(id, ..) if usize::from(id) == expected.len()));
        let kept =
            fixture.dead_letters("car", "topic").into_iter().zip(fixture.dead_letters("car", "payload"));
        assert_eq!(kept.collect::<Vec<_>>(), expected);
        assert_eq!(fixture.values("telemetry", "car", "a").len(), 5);
    }
}

#[test]
fn messages_keep_their_order_when_the_limit_of_new_columns_takes_some_apart() {
    let fixture = Fixture::with(one_worker());
    let mut client = fixture.connect(ProtocolVersion::V311, "c", "t-car");
    let mut other = fixture.connect(ProtocolVersion::V311, "other", "t-van");
    let most = IngestLimits::default().new_columns_per_minute_max;
    let ts = hub::clock::system_now().millis();
    let row = |values: &str| format!("{{\"ts\":{ts},\"values\":{{{values}}}}}");
    // With the key `a` these are two more than allowed.
    let keys: Vec<String> = (0..=most).map(|n| format!("\"k{n}\":{n}")).collect();
    let several = row(&format!("\"a\":2,{}", keys.join(",")));
    let messages = [row("\"a\":1"), several, row("\"b\":1"), row("\"k0\":7")];
    let together: Vec<_> =
        (1..).zip(&messages).map(|(id, text)| (QoS::AtLeastOnce, id, text.as_str())).collect();
    publish_together(&mut client, &together);
    for packet_id in 1..=4 {
        assert_eq!(client.next(), yes(packet_id));
    }
    other.publish(QoS::AtLeastOnce, 1, row(&keys[most]).as_bytes());
    assert_eq!(other.next(), yes(1));
    let one = |device: &str, key: &str| fixture.values("telemetry", device, key);
    assert_eq!(one("car", "a"), [Value::I64(2)], "the later message wins, also without some of its keys");
    assert_eq!((one("car", "k0"), one("car", "b")), (vec![Value::I64(7)], Vec::new()));
    assert_eq!(
        one("van", &format!("k{most}")),
        [Value::I64(most as i64)],
        "another device may add the column"
    );
    let refused = format!("[{{\"ts\":{ts},\"values\":{{{},{}}}}}]", keys[most - 1], keys[most]);
    assert_eq!(fixture.dead_letters("car", "payload"), [refused, row("\"b\":1")]);
    let reasons = fixture.dead_letters("car", "reason");
    assert!(reasons[0].contains(&format!("refused keys: k{}, k{most}", most - 1)), "{reasons:?}");
    assert!(reasons[1].ends_with("refused keys: b"), "{reasons:?}");
}

#[test]
fn a_batch_that_is_too_large_is_appended_in_pieces() {
    for version in EVERY {
        let fixture = Fixture::with(one_worker());
        let mut client = fixture.connect(version, "c", "t-car");
        client.publish(QoS::AtLeastOnce, 99, b"{\"n\":0}");
        assert_eq!(client.next(), yes(99));
        fixture.moods.rows_max.store(2, Ordering::SeqCst);
        let rows =
            [1, 2, 3].map(|n| format!("{{\"ts\":170000000000{n},\"values\":{{\"n\":{n}}}}}")).join(",");
        let large = format!("[{rows}]");
        let small: Vec<String> = (0..9).map(|n| format!("{{\"n\":{n}}}")).collect();
        let messages: Vec<_> = (1..)
            .zip(&small)
            .map(|(id, text)| (QoS::AtLeastOnce, id, if id == 6 { large.as_str() } else { text.as_str() }))
            .collect();
        publish_together(&mut client, &messages);
        for packet_id in 1..=9 {
            match client.next() {
                Reply::PubAck(6, ReasonCode::QUOTA_EXCEEDED, Some(reason)) => {
                    assert_eq!((packet_id, reason.as_str()), (6, "rows of a batch is 3, the limit is 2"));
                }
                other => assert_eq!(other, yes(packet_id)),
            }
        }
        assert_eq!(fixture.values("telemetry", "car", "n").len(), 9);
        assert_eq!(fixture.dead_letters("car", "payload"), [large]);
    }
}

#[test]
fn a_batch_that_waits_for_the_store_keeps_what_a_refused_message_had() {
    let fixture = Fixture::with(one_worker());
    let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    let mut other = fixture.connect(ProtocolVersion::V5, "other", "t-van");
    fixture.store.set_busy(Some("the disk is full"));
    let culprit = format!("{{\"{ONE_TOO_MANY}\":1}}");
    publish_together(&mut client, &[(QoS::ExactlyOnce, 1, &culprit), (QoS::AtLeastOnce, 2, "{\"a\":2}")]);
    assert!(client.is_silent());
    // The worker reads and closes other connections meanwhile.
    let mut more = fixture.connect(ProtocolVersion::V311, "more", "t-van");
    more.send_bytes(&[0xff; 2_000]);
    assert_eq!(more.next(), Reply::Closed);
    other.publish(QoS::AtLeastOnce, 1, b"{\"a\":\"a longer payload than that of the other client\"}");
    assert!(other.hears_nothing());
    fixture.store.set_busy(None);
    assert!(matches!(client.next(), Reply::PubRec(1, ReasonCode::QUOTA_EXCEEDED, Some(_))));
    assert_eq!((client.next(), other.next()), (yes(2), yes(1)));
    assert_eq!(fixture.dead_letters("car", "payload"), [culprit]);
    // The refusal has ended the exchange, so this is a new message.
    client.publish(QoS::ExactlyOnce, 1, b"{\"a\":1}");
    assert_eq!(client.next(), taken(1));
}

#[test]
fn messages_and_dead_letters_of_a_deleted_series_are_stored_in_the_new_one() {
    let fixture = Fixture::with(one_worker());
    let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    let send = |client: &mut Client, first: u16| {
        let row = format!("{{\"{LATER}\":1}}");
        let messages = [(QoS::AtLeastOnce, first, row.as_str()), (QoS::AtLeastOnce, first + 1, "no JSON")];
        publish_together(client, &messages);
    };
    send(&mut client, 1);
    assert_eq!(client.next(), yes(1));
    assert!(matches!(client.next(), Reply::PubAck(2, ReasonCode::PAYLOAD_FORMAT_INVALID, _)));
    fixture.moods.no_later.store(true, Ordering::SeqCst);
    send(&mut client, 3);
    assert!(client.is_silent(), "the rows are in the batch");
    for table in ["telemetry", hub::DEAD_LETTER_TABLE] {
        assert!(fixture.store.drop_table(&table.try_into().unwrap()).unwrap());
    }
    fixture.moods.no_later.store(false, Ordering::SeqCst);
    assert_eq!(client.next(), yes(3));
    assert!(matches!(client.next(), Reply::PubAck(4, ReasonCode::PAYLOAD_FORMAT_INVALID, _)));
    assert_eq!(fixture.values("telemetry", "car", LATER), [Value::I64(1)]);
    assert_eq!(fixture.dead_letters("car", "payload"), ["no JSON"]);
}

#[test]
fn a_refused_qos_2_message_is_new_when_it_is_repeated() {
    let fixture = Fixture::new();
    let mut client = fixture.open(ProtocolVersion::V311);
    client.say_hello("c", "t-car", false);
    fixture.moods.takes_nothing.store(true, Ordering::SeqCst);
    client.publish(QoS::ExactlyOnce, 9, b"{\"a\":1}");
    assert_eq!(client.next(), Reply::Closed);
    let mut back = fixture.open(ProtocolVersion::V311);
    assert!(back.say_hello("c", "t-car", false).session_present, "the session is, its exchange is not");
    back.publish(QoS::ExactlyOnce, 9, b"{\"a\":1}");
    assert_eq!(back.next(), Reply::Closed, "what is not stored is not answered");
    fixture.moods.takes_nothing.store(false, Ordering::SeqCst);
    let mut again = fixture.open(ProtocolVersion::V311);
    again.say_hello("c", "t-car", false);
    again.publish(QoS::ExactlyOnce, 9, b"{\"a\":1}");
    assert_eq!(again.next(), taken(9));
    assert_eq!(fixture.values("telemetry", "car", "a").len(), 1);
}

#[test]
fn a_repeated_message_is_not_acked_while_another_worker_has_the_first() {
    let fixture = Fixture::with(MqttOptions { workers: 2, ..MqttOptions::default() });
    fixture.store.set_busy(Some("the disk is full"));
    let mut first = fixture.open(ProtocolVersion::V311);
    first.say_hello("c", "t-car", false);
    first.publish(QoS::ExactlyOnce, 9, b"{\"a\":1}");
    assert!(first.is_silent(), "read, and kept in a batch that the store does not take");
    // The other worker gets the next connection.
    let mut second = fixture.open(ProtocolVersion::V311);
    assert!(second.say_hello("c", "t-car", false).session_present);
    second.publish(QoS::ExactlyOnce, 9, b"{\"a\":1}");
    assert!(second.hears_nothing());
    fixture.store.set_busy(None);
    assert_eq!(second.next(), taken(9));
    assert_eq!(fixture.values("telemetry", "car", "a").len(), 1);
}

#[test]
fn a_message_that_the_store_loses_gets_no_ack_and_affects_no_other_client() {
    for version in EVERY {
        let fixture = Fixture::with(one_worker());
        let mut other = fixture.connect(version, "other", "t-van");
        let mut client = fixture.connect(version, "c", "t-car");
        // The series exist afterwards, so that the next rows are the only ones.
        for client in [&mut client, &mut other] {
            client.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
            assert_eq!(client.next(), yes(1));
        }
        fixture.store.hold();
        let next = fixture.store.progress().appended + 1;
        publish_together(
            &mut client,
            &[(QoS::AtLeastOnce, 2, "{\"a\":2}"), (QoS::AtLeastOnce, 3, "{\"a\":3}")],
        );
        fixture.wait_for("both rows", || fixture.store.progress().appended > next);
        other.publish(QoS::AtLeastOnce, 2, b"{\"a\":2}");
        fixture.wait_for("the third row", || fixture.store.progress().appended > next + 1);
        fixture.store.lose(Ticket::of_rows(next + 1, 1), "the shard is gone");
        fixture.store.release();
        assert_eq!(other.next(), yes(2));
        assert_eq!(client.next(), yes(2), "the first message of the batch is kept");
        if version == ProtocolVersion::V5 {
            assert!(
                matches!(client.next(), Reply::Disconnect(_, Some(cause)) if cause.contains("the shard is gone"))
            );
        }
        assert_eq!(client.next(), Reply::Closed, "the second gets no ack");
        let mut again = fixture.connect(version, "c", "t-car");
        again.publish(QoS::AtLeastOnce, 3, b"{\"a\":3}");
        assert_eq!(again.next(), yes(3), "the repeated message is kept");
    }
}

#[test]
fn a_message_of_qos_0_that_the_store_loses_is_counted() {
    let fixture = Fixture::with(one_worker());
    let mut client = fixture.connect(ProtocolVersion::V311, "c", "t-car");
    client.publish(QoS::AtLeastOnce, 1, b"{\"a\":0}");
    assert_eq!(client.next(), yes(1));
    fixture.store.hold();
    let next = fixture.store.progress().appended + 1;
    client.publish(QoS::AtMostOnce, 0, b"{\"a\":1}");
    fixture.wait_for("the row", || fixture.store.progress().appended >= next);
    fixture.store.lose(Ticket::of_rows(next, 1), "the shard is gone");
    fixture.store.release();
    let counted = r#"tacho_refusals_total{door="mqtt",reason="lost_by_store"} 1"#;
    fixture.wait_for("the count", || fixture.metrics().contains(counted));
    client.publish(QoS::AtLeastOnce, 2, b"{\"a\":2}");
    assert_eq!(client.next(), yes(2), "the connection continues");
}

#[test]
fn a_busy_store_delays_messages_only() {
    let fixture = Fixture::with(one_worker());
    let mut writer = fixture.connect(ProtocolVersion::V311, "1", "t-car");
    let mut idle = fixture.connect(ProtocolVersion::V5, "2", "t-van");
    fixture.store.set_busy(Some("the disk is full"));
    writer.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert!(writer.is_silent(), "the message is in the batch that waits");
    assert!(idle.is_silent(), "and a ping is answered");
    let mut new = fixture.connect(ProtocolVersion::V5, "3", "t-van");
    // Messages of all kinds wait, and the packets behind them too.
    new.publish(QoS::AtMostOnce, 0, b"{\"b\":1}");
    new.publish(QoS::AtLeastOnce, 7, b"{\"b\":2}");
    new.send(&Packet::PingReq);
    assert!(new.hears_nothing());
    assert!(fixture.values("telemetry", "van", "b").is_empty());
    fixture.store.set_busy(None);
    assert_eq!(writer.next(), yes(1));
    // The answer to a ping does not wait for the sync.
    let mut replies = [new.next(), new.next()];
    replies.sort_by_key(|reply| *reply == Reply::Pong);
    assert_eq!(replies, [yes(7), Reply::Pong]);
    assert_eq!(fixture.values("telemetry", "van", "b").len(), 2);
}

#[test]
fn messages_of_closed_connections_wait_for_a_busy_store() {
    let fixture = Fixture::with(one_worker());
    let mut writer = fixture.connect(ProtocolVersion::V311, "1", "t-car");
    fixture.store.set_busy(Some("the disk is full"));
    writer.publish(QoS::AtMostOnce, 0, b"{\"a\":1}");
    assert!(writer.is_silent());
    let mut leaving = fixture.connect(ProtocolVersion::V311, "2", "t-van");
    leaving.publish(QoS::AtMostOnce, 0, b"{\"b\":1}");
    drop((writer, leaving));
    fixture.store.set_busy(None);
    fixture.wait_for("the message", || !fixture.values("telemetry", "van", "b").is_empty());
    assert_eq!(fixture.values("telemetry", "car", "a").len(), 1);
}

#[test]
fn the_first_message_of_a_device_waits_for_room_like_any_other() {
    let fixture = Fixture::new();
    fixture.moods.no_new_series.store(true, Ordering::SeqCst);
    let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    client.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    client.publish(QoS::AtLeastOnce, 2, b"not json");
    assert!(client.hears_nothing());
    fixture.moods.no_new_series.store(false, Ordering::SeqCst);
    assert_eq!(client.next(), yes(1));
    assert!(matches!(client.next(), Reply::PubAck(2, ReasonCode::PAYLOAD_FORMAT_INVALID, Some(_))));
    assert_eq!(fixture.dead_letters("car", "payload"), ["not json"]);
}

#[test]
fn a_worker_that_panics_ends_the_process_and_leaves_no_client_waiting() {
    let ended = in_own_process(|| {
        let fixture = Fixture::new();
        let mut client = fixture.connect(ProtocolVersion::V311, "c", "t-car");
        fixture.moods.panics.store(true, Ordering::SeqCst);
        client.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
        client.next();
    });
    assert!(told_before_abort(&ended).contains("a bug on purpose"));
}

#[test]
fn a_panic_over_a_message_ends_its_connection_and_no_other() {
    let fixture = Fixture::with(one_worker());
    let mut other = fixture.connect(ProtocolVersion::V311, "other", "t-van");
    other.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(other.next(), yes(1));
    let mut client = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    fixture.moods.panics_at_series.store(true, Ordering::SeqCst);
    client.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    let told = Some("the server failed at what came; its log says why".to_owned());
    assert_eq!(client.next(), Reply::Disconnect(ReasonCode::UNSPECIFIED_ERROR, told));
    fixture.moods.panics_at_series.store(false, Ordering::SeqCst);
    other.publish(QoS::AtLeastOnce, 2, b"{\"a\":2}");
    assert_eq!(other.next(), yes(2));
    let mut again = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    again.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(again.next(), yes(1));
    assert!(fixture.metrics().contains("tacho_refusals_total{door=\"mqtt\",reason=\"panic\"} 1"));
    assert_eq!(fixture.values("telemetry", "van", "a").len(), 2);
}
