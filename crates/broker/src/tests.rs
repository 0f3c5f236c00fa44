//! Sessions of the broker over the in-memory engine, which tells when a write is durable and can be opened again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kv::MemoryStore;
use model::limits::Portion;
use uuid::Uuid;

use super::*;
use model::Wake;

pub(super) const TENANT: Uuid = Uuid::from_u128(1);
pub(super) const DEVICE: Uuid = Uuid::from_u128(2);
pub(super) const HOUR_S: u32 = 3_600;

#[derive(Default)]
pub(super) struct Wakes(pub(super) AtomicUsize);

impl Wake for Wakes {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(super) fn open(kv: &Arc<MemoryStore>) -> Broker {
    let kv = Arc::clone(kv) as Arc<dyn kv::KeyValueStore>;
    Broker::open(kv, Arc::default(), Portion::ALL, Arc::new(()), 0).unwrap()
}

pub(super) fn attach_request(client_id: &str, clean_start: bool, expiry_s: u32, now_ms: i64) -> Attach<'_> {
    Attach {
        tenant: TENANT,
        device: DEVICE,
        client_id,
        clean_start,
        expiry_s,
        inflight_max: 10,
        wake: Arc::new(Wakes::default()),
        now_ms,
    }
}

/// A session that outlives its connections, and whether it is an earlier one.
pub(super) fn durable(broker: &Broker, client_id: &str) -> (Attached, bool) {
    let (attached, is_present) = broker.attach(&attach_request(client_id, false, HOUR_S, 0)).unwrap();
    (attached.unwrap(), is_present)
}

pub(super) fn subscribe(broker: &Broker, attached: &Attached, filter: &str, qos: Quality) {
    let options = SubscriptionOptions { qos, no_local: false, retain_as_published: false, identifier: None };
    let request = Request { filter, options, retain_handling: RetainHandling::Always };
    let mut results = Vec::new();
    broker.subscribe(&attached.session, &[request], &mut results).unwrap();
    assert!(results[0].is_ok(), "{results:?}");
}

fn publication(broker: &Broker, topic: &str, payload: &[u8], qos: Quality, retain: bool) -> Publication {
    let message = broker.message(TENANT, Content { topic, payload, properties: &[], expires_at_ms: None });
    Publication { message, qos, retain, tenant: TENANT, publisher: None }
}

pub(super) fn publish(broker: &Broker, topic: &str, payload: &str, qos: Quality) -> Published {
    let mut publications = vec![publication(broker, topic, payload.as_bytes(), qos, false)];
    let mut published = Published::default();
    broker.publish(&mut publications, &mut published).unwrap();
    published
}

/// The packets that a connection gets now, as text: `payload` with `!` for a duplicate and `#` for retain, or `release`.
pub(super) fn take(broker: &Broker, attached: &Attached) -> Vec<(Option<u16>, String)> {
    let (mut packets, mut acknowledged) = (Vec::new(), Acknowledged::default());
    loop {
        let delivered = broker.deliver(attached, 0, &mut acknowledged, &mut |packet| {
            packets.push(match packet {
                Outgoing::Release { packet_id } => (Some(*packet_id), "release".to_owned()),
                Outgoing::Publish { message, retain, duplicate, packet_id, .. } => {
                    let payload = String::from_utf8(message.payload.to_vec()).unwrap();
                    let marks = [(*duplicate, "!"), (*retain, "#")];
                    let marks: String = marks.iter().filter(|mark| mark.0).map(|mark| mark.1).collect();
                    (*packet_id, format!("{payload}{marks}"))
                }
            });
            Sent::Yes
        });
        match delivered.unwrap() {
            Delivered::Again => {}
            Delivered::All | Delivered::Undurable => break,
        }
    }
    broker.commit(&mut acknowledged);
    packets
}

pub(super) fn texts(packets: &[(Option<u16>, String)]) -> Vec<&str> {
    packets.iter().map(|(_, text)| text.as_str()).collect()
}

pub(super) fn puback(broker: &Broker, attached: &Attached, packets: &[(Option<u16>, String)]) {
    let mut acknowledged = Acknowledged::default();
    for (packet_id, _) in packets {
        broker.on_puback(&attached.session, packet_id.unwrap(), &mut acknowledged);
    }
    broker.commit(&mut acknowledged);
}

#[test]
fn a_message_is_sent_when_it_is_durable_and_not_before() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    subscribe(&broker, &attached, "a/+", Quality::AtLeastOnce);
    kv.hold();
    let sequence = publish(&broker, "a/b", "1", Quality::AtLeastOnce).sequence.unwrap();
    assert!(broker.progress().durable < sequence);
    assert!(take(&broker, &attached).is_empty());
    kv.release();
    assert_eq!(texts(&take(&broker, &attached)), ["1"]);
    assert!(take(&broker, &attached).is_empty());
}

#[test]
fn a_client_gets_what_it_has_not_acknowledged_again_after_a_crash_with_the_same_identifiers() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    subscribe(&broker, &attached, "#", Quality::AtLeastOnce);
    for n in 0..15 {
        publish(&broker, "t", &n.to_string(), Quality::AtLeastOnce);
    }
    let first = take(&broker, &attached);
    assert_eq!(first.len(), 10, "the Receive Maximum of the client");
    puback(&broker, &attached, &first[..4]);
    drop(broker);

    let broker = open(&kv);
    let (attached, is_present) = durable(&broker, "c");
    assert!(is_present);
    let again = take(&broker, &attached);
    assert_eq!(texts(&again), ["4!", "5!", "6!", "7!", "8!", "9!", "10!", "11!", "12!", "13!"]);
    assert_eq!(
        again[..6].iter().map(|p| p.0).collect::<Vec<_>>(),
        first[4..].iter().map(|p| p.0).collect::<Vec<_>>()
    );
    puback(&broker, &attached, &again);
    assert_eq!(texts(&take(&broker, &attached)), ["14!"]);
    publish(&broker, "t", "new", Quality::AtLeastOnce);
    assert_eq!(texts(&take(&broker, &attached)), ["new"]);
}

#[test]
fn a_received_message_of_qos_2_is_released_and_not_sent_again() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    subscribe(&broker, &attached, "t", Quality::ExactlyOnce);
    publish(&broker, "t", "1", Quality::ExactlyOnce);
    publish(&broker, "t", "2", Quality::ExactlyOnce);
    let sent = take(&broker, &attached);
    let mut acknowledged = Acknowledged::default();
    let packet_id = sent[0].0.unwrap();
    kv.hold();
    let received = broker.on_pubrec(&attached.session, packet_id, &mut acknowledged).unwrap();
    assert_eq!(received, PubrecEffect::Known);
    assert!(take(&broker, &attached).is_empty(), "PUBREL waits until the reception is durable");
    kv.release();
    assert_eq!(take(&broker, &attached), [(Some(packet_id), "release".into())]);
    drop(broker);

    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    assert_eq!(texts(&take(&broker, &attached)), ["release", "2!"]);
    assert!(broker.on_pubcomp(&attached.session, packet_id, &mut acknowledged));
    assert!(!broker.on_pubcomp(&attached.session, packet_id, &mut acknowledged));
    let unknown = broker.on_pubrec(&attached.session, 999, &mut acknowledged).unwrap();
    assert_eq!(unknown, PubrecEffect::Unknown);
}

#[test]
fn messages_for_an_absent_session_wait_on_disk_up_to_the_limit() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    subscribe(&broker, &attached, "t", Quality::AtLeastOnce);
    broker.detach(&attached, HOUR_S, 0);
    let payload = vec![b'x'; 4 * 1024 * 1024];
    let mut dropped = Vec::new();
    for _ in 0..17 {
        let mut published = Published::default();
        let mut publications = vec![publication(&broker, "t", &payload, Quality::AtLeastOnce, false)];
        broker.publish(&mut publications, &mut published).unwrap();
        dropped.extend(published.dropped);
    }
    assert!(broker.memory.bytes() < 3 * payload.len(), "the engine has them, not memory");
    let [first, ..] = &dropped[..] else { panic!("the queue has a limit") };
    assert_eq!(first.device, Some(DEVICE));
    assert!(first.reason.contains("QUEUE_BYTES_MAX is 67108864"), "{}", first.reason);
    let (attached, is_present) = durable(&broker, "c");
    assert!(is_present);
    let got = take(&broker, &attached);
    assert!(got.len() >= 10 && got.iter().all(|(_, text)| text.len() == payload.len()));
}

#[test]
fn queues_share_a_large_content_until_the_last_one_has_delivered_it() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (one, _) = durable(&broker, "one");
    let (two, _) = durable(&broker, "two");
    for attached in [&one, &two] {
        subscribe(&broker, attached, "t", Quality::AtLeastOnce);
    }
    let payload = "p".repeat(10_000);
    publish(&broker, "t", &payload, Quality::AtLeastOnce);
    let contents = || {
        let all =
            kv::KeyValueStore::scan(&*kv, shared::CONTENTS, &kv::KeyRange::all(), kv::Direction::Ascending);
        all.unwrap().count()
    };
    assert_eq!(contents(), 1);
    let packets = take(&broker, &one);
    puback(&broker, &one, &packets);
    assert_eq!(contents(), 1);
    drop(broker);
    let broker = open(&kv);
    let (two, _) = durable(&broker, "two");
    let packets = take(&broker, &two);
    assert_eq!(texts(&packets), [format!("{payload}!")]);
    puback(&broker, &two, &packets);
    assert_eq!(contents(), 0);
}

#[test]
fn retained_messages_are_sent_in_steps_and_counted() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let retain = |topic: &str, payload: &str| {
        let mut publications =
            vec![publication(&broker, topic, payload.as_bytes(), Quality::AtLeastOnce, true)];
        broker.publish(&mut publications, &mut Published::default()).unwrap();
    };
    for n in 0..600 {
        retain(&format!("r/{n}"), "v");
        retain(&format!("s/{n}"), "v");
    }
    retain("r/7", "");
    retain("r/8", "w");
    let client = attach_request("c", true, 0, 0);
    let attached = broker.begin(&client);
    subscribe(&broker, &attached, "r/#", Quality::AtMostOnce);
    let got = take(&broker, &attached);
    assert_eq!(got.len(), 599);
    assert_eq!(got.iter().filter(|(id, text)| id.is_none() && text == "w#").count(), 1);
    assert_eq!(broker.order.lock().topics(), 1_199);
    drop(broker);
    assert_eq!(open(&kv).order.lock().topics(), 1_199, "counted again from the engine");
}

#[test]
fn a_session_ends_when_it_has_expired_or_the_client_wants_a_new_one() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    subscribe(&broker, &attached, "t", Quality::AtLeastOnce);
    broker.detach(&attached, HOUR_S, 1_000);
    publish(&broker, "t", "1", Quality::AtLeastOnce);
    let late = 1_000 + 1_000 * i64::from(HOUR_S);
    let exists = |_| true;
    broker.sweep(late - 1, &exists, &exists);
    assert_eq!(broker.sessions.lock().len(), 1);
    broker.sweep(late, &exists, &exists);
    assert_eq!(broker.sessions.lock().len(), 0);
    while broker.has_ended_sessions() {
        assert!(broker.redistribute(late).unwrap().dropped.is_empty());
    }
    for space in [super::broker::SESSIONS, super::broker::SUBSCRIPTIONS, super::broker::QUEUES] {
        let all = kv::KeyValueStore::scan(&*kv, space, &kv::KeyRange::all(), kv::Direction::Ascending);
        assert_eq!(all.unwrap().count(), 0, "{space}");
    }
    let (attached, is_present) = durable(&broker, "c");
    assert!(!is_present);
    subscribe(&broker, &attached, "t", Quality::AtLeastOnce);
    let (attached, is_present) = broker.attach(&attach_request("c", true, 0, 0)).unwrap();
    assert!(attached.is_none() && !is_present);
    assert!(publish(&broker, "t", "2", Quality::AtLeastOnce).sequence.is_none(), "nobody is left");
}

#[test]
fn an_old_connection_neither_gets_messages_nor_ends_the_session_of_the_new_one() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (old, _) = durable(&broker, "c");
    subscribe(&broker, &old, "t", Quality::AtLeastOnce);
    let (new, is_present) = durable(&broker, "c");
    assert!(is_present);
    broker.detach(&old, 0, 0);
    publish(&broker, "t", "1", Quality::AtLeastOnce);
    assert!(take(&broker, &old).is_empty());
    assert_eq!(texts(&take(&broker, &new)), ["1"]);
}

#[test]
fn a_busy_engine_changes_nothing() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    subscribe(&broker, &attached, "t", Quality::AtLeastOnce);
    kv.set_busy(Some("full"));
    let mut publications = vec![publication(&broker, "t", b"1", Quality::AtLeastOnce, false)];
    let error = broker.publish(&mut publications, &mut Published::default()).unwrap_err();
    assert!(error.is_busy() && publications.len() == 1);
    kv.set_busy(None);
    broker.publish(&mut publications, &mut Published::default()).unwrap();
    assert!(publications.is_empty());
    assert_eq!(texts(&take(&broker, &attached)), ["1"]);
}

#[test]
fn a_device_has_a_limited_number_of_sessions_and_gets_room_back() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let names: Vec<String> = (0..=limits::SESSIONS_PER_DEVICE_MAX).map(|n| n.to_string()).collect();
    let (last, others) = names.split_last().unwrap();
    let attached: Vec<_> = others.iter().map(|name| durable(&broker, name).0).collect();
    let refused = broker.attach(&attach_request(last, false, HOUR_S, 0)).unwrap_err().to_string();
    assert!(refused.contains("SESSIONS_PER_DEVICE_MAX is 1024"), "{refused}");
    let other_device = Attach { device: Uuid::from_u128(9), ..attach_request(last, false, HOUR_S, 0) };
    assert!(broker.attach(&other_device).is_ok());
    broker.detach(&attached[0], 0, 0);
    assert!(broker.attach(&attach_request(last, false, HOUR_S, 0)).is_ok());
}

/// The topics below `$SYS/broker/` that a connection gets now, and whether they have the retain flag.
fn counters(broker: &Broker, attached: &Attached) -> Vec<(String, bool)> {
    let (mut found, mut acknowledged) = (Vec::new(), Acknowledged::default());
    let mut send = |packet: &Outgoing<'_>| {
        let Outgoing::Publish { message, retain, qos, .. } = packet else { panic!("{packet:?}") };
        assert_eq!(*qos, Quality::AtMostOnce);
        found.push((message.topic.strip_prefix("$SYS/broker/").unwrap().to_owned(), *retain));
        Sent::Yes
    };
    broker.deliver(attached, 0, &mut acknowledged, &mut send).unwrap();
    found
}

#[test]
fn counters_go_to_subscribers_of_the_servers_topics_and_no_others() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let report = |uptime_s| broker.publish_system(1, std::time::Duration::from_secs(uptime_s));
    let (all, _) = durable(&broker, "all");
    subscribe(&broker, &all, "#", Quality::AtLeastOnce);
    subscribe(&broker, &all, "+/broker/uptime", Quality::AtLeastOnce);
    let (early, _) = durable(&broker, "early");
    subscribe(&broker, &early, "$SYS/broker/clients/+", Quality::AtLeastOnce);
    assert!(counters(&broker, &early).is_empty(), "there is no report yet");
    let commits = broker.progress().committed;
    report(10);
    let of_clients = ["clients/connected", "clients/disconnected", "clients/total", "clients/maximum"];
    assert_eq!(counters(&broker, &early), of_clients.map(|topic| (topic.to_owned(), false)));
    assert!(counters(&broker, &all).is_empty(), "a wildcard selects no topic of the server");
    // A new subscription gets the last report at once, like retained messages.
    let (late, _) = durable(&broker, "late");
    subscribe(&broker, &late, "$SYS/broker/uptime", Quality::AtLeastOnce);
    assert_eq!(counters(&broker, &late), [("uptime".to_owned(), true)]);
    // An absent client gets none, and nothing is written.
    broker.detach(&early, HOUR_S, 0);
    report(20);
    let (early, is_present) = durable(&broker, "early");
    assert!(is_present && counters(&broker, &early).is_empty());
    assert_eq!(counters(&broker, &late), [("uptime".to_owned(), false)]);
    let written = broker.progress().committed - commits;
    assert!(written <= 3, "only sessions and subscriptions are written, not {written} batches");
}

#[test]
fn counters_know_absent_clients() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (here, _) = durable(&broker, "here");
    let (left, _) = durable(&broker, "left");
    subscribe(&broker, &left, "t", Quality::AtLeastOnce);
    broker.client_connected();
    broker.client_connected();
    broker.client_left();
    broker.detach(&left, HOUR_S, 0);
    subscribe(&broker, &here, "$SYS/broker/clients/+", Quality::AtLeastOnce);
    broker.publish_system(2, std::time::Duration::from_secs(10));
    // connected, disconnected, total, maximum
    assert_eq!(texts(&take(&broker, &here)), ["1", "1", "2", "2"]);
    let (_, is_present) = durable(&broker, "left");
    assert!(is_present);
    broker.publish_system(2, std::time::Duration::from_secs(20));
    assert_eq!(texts(&take(&broker, &here)), ["1", "0", "1", "2"]);
}

#[test]
fn absent_sessions_lose_subscriptions_that_are_forbidden() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (away, _) = durable(&broker, "away");
    let (here, _) = durable(&broker, "here");
    for attached in [&away, &here] {
        subscribe(&broker, attached, "kept", Quality::AtLeastOnce);
        subscribe(&broker, attached, "lost", Quality::AtLeastOnce);
    }
    broker.detach(&away, HOUR_S, 0);
    let is_permitted = |device, client: &str, filter: &str| {
        assert_eq!((device, client), (DEVICE, "away"), "a connection checks its own subscriptions");
        filter == "kept"
    };
    assert_eq!(broker.end_forbidden(&is_permitted).unwrap(), 1);
    assert_eq!(broker.end_forbidden(&is_permitted).unwrap(), 0);
    publish(&broker, "lost", "1", Quality::AtLeastOnce);
    publish(&broker, "kept", "2", Quality::AtLeastOnce);
    let broker = open(&kv);
    let (away, is_present) = durable(&broker, "away");
    assert!(is_present);
    // After a restart it is not known what was sent.
    assert_eq!(texts(&take(&broker, &away)), ["2!"]);
}

#[test]
fn a_message_expires_until_it_is_sent_and_not_after_that() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    subscribe(&broker, &attached, "t", Quality::ExactlyOnce);
    let publish_until = |payload: &str, expires_at_ms| {
        let content = Content {
            topic: "t",
            payload: payload.as_bytes(),
            properties: &[],
            expires_at_ms: Some(expires_at_ms),
        };
        let (message, qos) = (broker.message(TENANT, content), Quality::ExactlyOnce);
        let mut publications =
            vec![Publication { message, qos, retain: false, tenant: TENANT, publisher: None }];
        broker.publish(&mut publications, &mut Published::default()).unwrap();
    };
    let at = |attached: &Attached, now_ms| {
        let (mut payloads, mut acknowledged) = (Vec::new(), Acknowledged::default());
        let mut send = |packet: &Outgoing<'_>| {
            let Outgoing::Publish { message, .. } = packet else { panic!("{packet:?}") };
            payloads.push(String::from_utf8(message.payload.to_vec()).unwrap());
            Sent::Yes
        };
        broker.deliver(attached, now_ms, &mut acknowledged, &mut send).unwrap();
        broker.commit(&mut acknowledged);
        payloads
    };
    publish_until("sent in time", 100);
    assert_eq!(at(&attached, 99), ["sent in time"]);
    broker.detach(&attached, HOUR_S, 0);
    publish_until("never sent", 100);
    let (attached, _) = durable(&broker, "c");
    assert_eq!(at(&attached, 100), ["sent in time"], "the exchange continues, and the other message is gone");
}
