//! The memory that messages and their places in queues take.

use std::sync::Arc;

use kv::MemoryStore;

use super::tests::{HOUR_S, attach_request, durable, open, puback, publish, subscribe, take};
use super::*;

const SESSIONS: usize = 300;
const BYTES_MAX: usize = 4 << 20;
/// A queue that grows may be the last thing that has room.
const ONE_QUEUE_BYTES: usize = 128 << 10;

fn small_broker(kv: &Arc<MemoryStore>) -> Broker {
    let mut broker = open(kv);
    broker.memory_bytes_max = BYTES_MAX;
    broker
}

fn is_bounded(broker: &Broker) -> bool {
    broker.memory.bytes() <= BYTES_MAX + ONE_QUEUE_BYTES
}

#[test]
fn many_sessions_that_do_not_read_stay_below_the_bound() {
    for qos in [Quality::AtMostOnce, Quality::AtLeastOnce] {
        let kv = Arc::new(MemoryStore::new());
        let broker = small_broker(&kv);
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|n| broker.begin(&attach_request(&n.to_string(), true, 0, 0)))
            .inspect(|attached| subscribe(&broker, attached, "t", qos))
            .collect();
        for _ in 0..limits::IMMEDIATE_MESSAGES_MAX {
            publish(&broker, "t", "x", qos);
            assert!(is_bounded(&broker), "{}", broker.memory.bytes());
        }
        assert!(broker.memory.bytes() > BYTES_MAX / 2);
        let dropped = broker.metrics.dropped_immediate.get() + broker.metrics.dropped_queued.get();
        assert!(dropped > SESSIONS as u64 * 100, "{dropped}");
        // A queue that is read gives its memory back.
        let before = broker.memory.bytes();
        for _ in 0..1_000 {
            let packets = take(&broker, &sessions[0]);
            if qos == Quality::AtLeastOnce {
                puback(&broker, &sessions[0], &packets);
            }
        }
        assert!(broker.memory.bytes() < before);
        sessions.iter().for_each(|attached| broker.detach(attached, 0, 0));
        assert_eq!(broker.memory.bytes(), 0);
    }
}

#[test]
fn sessions_on_disk_leave_memory_when_they_have_no_connection() {
    let kv = Arc::new(MemoryStore::new());
    let broker = small_broker(&kv);
    let (attached, _) = durable(&broker, "c");
    subscribe(&broker, &attached, "t", Quality::AtLeastOnce);
    (0..200).for_each(|_| drop(publish(&broker, "t", "x", Quality::AtLeastOnce)));
    assert!(broker.memory.bytes() > 0);
    broker.detach(&attached, HOUR_S, 0);
    assert_eq!(broker.memory.bytes(), 0);
}
