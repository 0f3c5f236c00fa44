//! Tests of the outboxes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::limits::Portion;
use model::{Timestamp, Value};
use tokio::sync::watch;
use uuid::Uuid;

use super::limits::{OUTBOX_BYTES_MAX, OUTBOX_MESSAGES_MAX};
use super::*;
use crate::metrics::Metrics;

const CAR: Uuid = Uuid::from_u128(7);
const ALL: Interests = Interests { shared_attributes: true, rpc: true };

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn outboxes() -> (Arc<Outboxes>, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::new());
    (Arc::new(Outboxes::on(Portion::ALL, Arc::clone(&metrics))), metrics)
}

fn changed(key: &str, value: Value) -> Arc<DeviceMessage> {
    let entries = vec![Attribute { key: key.into(), value, ts: Timestamp::from_micros(1) }];
    Arc::new(DeviceMessage::AttributesChanged { entries })
}

fn deleted(key: &str) -> Arc<DeviceMessage> {
    Arc::new(DeviceMessage::AttributesDeleted { keys: vec![key.into()] })
}

fn request(id: i32, params: &str, expires_at: Timestamp) -> (Arc<DeviceMessage>, watch::Receiver<bool>) {
    let (request, taken) = RpcRequest::new(id, "reboot".into(), params.into(), true, false, expires_at);
    (Arc::new(DeviceMessage::RpcRequest(request)), taken)
}

fn call(id: i32) -> (Arc<DeviceMessage>, watch::Receiver<bool>) {
    request(id, "{}", Timestamp::MAX)
}

fn ids(messages: &[Arc<DeviceMessage>]) -> Vec<i32> {
    let id = |message: &Arc<DeviceMessage>| match &**message {
        DeviceMessage::RpcRequest(request) => request.id,
        other => panic!("{other:?}"),
    };
    messages.iter().map(id).collect()
}

#[test]
fn a_connection_is_woken_once_until_its_outbox_is_empty() {
    let (outboxes, metrics) = outboxes();
    let wakes = Arc::new(Wakes::default());
    let outbox = outboxes.open(CAR, ALL, Arc::clone(&wakes) as _);
    for id in 0..3 {
        assert_eq!(outboxes.send(CAR, &call(id).0), Delivered { connections: 1, full: 0 });
    }
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(ids(&outbox.take(2)), [0, 1]);
    outboxes.send(CAR, &call(3).0);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1, "the owner takes on");
    assert_eq!(ids(&outbox.take(9)), [2, 3]);
    outboxes.send(CAR, &call(4).0);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 2);
    assert!(metrics.device_messages.waiting_bytes.get() > 0);
    drop(outbox);
    assert_eq!(outboxes.send(CAR, &call(5).0), Delivered::default());
    assert_eq!(metrics.device_messages.waiting_bytes.get(), 0);
    assert_eq!(metrics.device_messages.outboxes.get(), 0);
}

#[test]
fn a_message_goes_to_the_connections_of_its_device_that_want_it() {
    let (outboxes, _) = outboxes();
    let open = |device, interests| outboxes.open(device, interests, Arc::new(NotifyWake::default()));
    let attributes_only = Interests { shared_attributes: true, rpc: false };
    let first = open(CAR, ALL);
    let second = open(CAR, attributes_only);
    let other = open(Uuid::from_u128(8), ALL);
    assert_eq!(outboxes.send(CAR, &call(1).0).connections, 1);
    assert_eq!(outboxes.send(CAR, &changed("a", Value::I64(1))).connections, 2);
    assert!(second.set_interests(ALL) && !second.set_interests(ALL));
    assert_eq!(outboxes.send(CAR, &call(2).0).connections, 2);
    assert_eq!((first.take(9).len(), second.take(9).len(), other.take(9).len()), (3, 2, 0));
}

#[test]
fn a_call_without_room_is_refused_and_an_expired_one_makes_room() {
    let (outboxes, metrics) = outboxes();
    let outbox = outboxes.open(CAR, ALL, Arc::new(NotifyWake::default()));
    let long = "x".repeat(OUTBOX_BYTES_MAX / 3);
    assert_eq!(outboxes.send(CAR, &request(1, &long, Timestamp::MAX).0).connections, 1);
    assert_eq!(outboxes.send(CAR, &request(2, &long, Timestamp::from_micros(1)).0).connections, 1);
    assert_eq!(outboxes.send(CAR, &request(3, &long, Timestamp::MAX).0).connections, 1);
    assert_eq!(
        outboxes.send(CAR, &request(4, &long, Timestamp::MAX).0),
        Delivered { connections: 0, full: 1 }
    );
    assert_eq!(metrics.device_messages.refused.get(), 1);
    assert_eq!(ids(&outbox.take(9)), [1, 3]);
}

#[test]
fn an_expired_call_is_not_given_out() {
    let (outboxes, _) = outboxes();
    let outbox = outboxes.open(CAR, ALL, Arc::new(NotifyWake::default()));
    let (message, taken) = request(1, "{}", Timestamp::from_micros(1));
    outboxes.send(CAR, &message);
    drop(message);
    assert!(outbox.take(9).is_empty() && !*taken.borrow());
    assert!(taken.has_changed().is_err(), "no outbox has it any more");
}

#[test]
fn the_sender_learns_that_a_call_was_taken() {
    let (outboxes, _) = outboxes();
    let outbox = outboxes.open(CAR, ALL, Arc::new(NotifyWake::default()));
    let (message, taken) = call(1);
    outboxes.send(CAR, &message);
    assert!(!*taken.borrow());
    assert_eq!(outbox.take(1).len(), 1);
    assert!(*taken.borrow());
}

#[test]
fn attributes_without_room_are_reduced_to_the_newest_state_of_each_key() {
    let (outboxes, metrics) = outboxes();
    let outbox = outboxes.open(CAR, ALL, Arc::new(NotifyWake::default()));
    outboxes.send(CAR, &call(1).0);
    outboxes.send(CAR, &changed("gone", Value::Bool(true)));
    outboxes.send(CAR, &deleted("back"));
    for n in 0..OUTBOX_MESSAGES_MAX as i64 - 3 {
        outboxes.send(CAR, &changed("speed", Value::I64(n)));
    }
    assert_eq!(metrics.device_messages.coalesced.get(), 0);
    outboxes.send(CAR, &deleted("gone"));
    assert_eq!(metrics.device_messages.coalesced.get(), 1);
    outboxes.send(CAR, &changed("back", Value::I64(5)));
    let taken = outbox.take(9);
    assert_eq!(ids(&taken[..1]), [1]);
    let [DeviceMessage::AttributesChanged { entries }, DeviceMessage::AttributesDeleted { keys }] =
        [&*taken[1], &*taken[2]]
    else {
        panic!("{taken:?}")
    };
    let last = Value::I64(OUTBOX_MESSAGES_MAX as i64 - 4);
    assert_eq!(
        entries.iter().map(|entry| (&*entry.key, &entry.value)).collect::<Vec<_>>(),
        [("speed", &last)]
    );
    let mut deleted: Vec<_> = keys.iter().map(|key| &**key).collect();
    deleted.sort_unstable();
    assert_eq!(deleted, ["back", "gone"]);
    let DeviceMessage::AttributesChanged { entries } = &*taken[3] else { panic!("{taken:?}") };
    assert_eq!((&*entries[0].key, &entries[0].value), ("back", &Value::I64(5)));
}

#[test]
fn long_attributes_are_reduced_by_their_bytes_and_what_still_does_not_fit_is_refused() {
    let (outboxes, metrics) = outboxes();
    let outbox = outboxes.open(CAR, ALL, Arc::new(NotifyWake::default()));
    let long = |n: usize| Value::String(n.to_string().repeat(OUTBOX_BYTES_MAX / 5));
    for n in 0..9 {
        assert_eq!(outboxes.send(CAR, &changed("a", long(n))).connections, 1);
    }
    for key in ["b", "c", "d"] {
        assert_eq!(outboxes.send(CAR, &changed(key, long(1))).connections, 1);
    }
    assert_eq!(outboxes.send(CAR, &changed("e", long(1))), Delivered { connections: 0, full: 1 });
    assert!(metrics.device_messages.waiting_bytes.get() <= OUTBOX_BYTES_MAX as i64);
    let taken = outbox.take(99);
    let keys = taken.iter().map(|message| match &**message {
        DeviceMessage::AttributesChanged { entries } => entries.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(keys.sum::<usize>(), 4);
    assert_eq!(metrics.device_messages.waiting_bytes.get(), 0);
}

#[test]
fn all_outboxes_together_are_bounded() {
    let metrics = Arc::new(Metrics::new());
    let outboxes = Arc::new(Outboxes::on(Portion::thousandths(1), Arc::clone(&metrics)));
    let open = |device| outboxes.open(device, ALL, Arc::new(NotifyWake::default()));
    let (first, second) = (open(CAR), open(Uuid::from_u128(8)));
    let half = "x".repeat(40_000);
    let send = |device, id| outboxes.send(device, &request(id, &half, Timestamp::MAX).0);
    assert_eq!(send(CAR, 1).connections, 1);
    assert_eq!(send(Uuid::from_u128(8), 2), Delivered { connections: 0, full: 1 });
    assert_eq!(first.take(1).len(), 1);
    assert_eq!(send(Uuid::from_u128(8), 3).connections, 1);
    assert_eq!(ids(&second.take(1)), [3]);
}
