//! Tests of a slow disk: acks wait for it, memory stays within its limits, reads continue, and no row is lost. The tests release
//! operation by operation; they do not depend on a clock.

use std::path::Path;

use model::{SeriesId, SeriesKey};
use store::{Blame, Durability, Maintenance, StoreError, Writer};
use store_local::{LocalStore, Options};
use testkit::{Act, FaultyDisk, Operation, SlowDisk, Survivors};

use crate::support::{eventually, keep, keep_in_the_end, numbers, open, put, reached, tiny_manual};

const LOG_MAX: usize = 4_000;
const MEMORY_MAX: usize = 20_000;

fn device(store: &LocalStore) -> SeriesId {
    store.series(&SeriesKey::device("t", "d").unwrap()).unwrap()
}

fn bounded() -> Options {
    Options {
        log_pending_bytes_max: LOG_MAX,
        memtable_bytes_max: MEMORY_MAX,
        memtable_flush_bytes: MEMORY_MAX / 2,
        ..tiny_manual()
    }
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "log")
}

/// Appends rows from `n` on until the store refuses one. Returns the number of rows and the reason.
fn write_until_busy(store: &LocalStore, mut n: i64) -> (i64, String) {
    loop {
        match put(store, device(store), n, n, Durability::Fsync) {
            Ok(_) => n += 1,
            Err(refused) => {
                assert_eq!(refused.blame(), Blame::Busy, "{refused}");
                return (n, refused.to_string());
            }
        }
    }
}

fn expected(rows: i64) -> Vec<(i64, i64)> {
    (0..rows).map(|n| (n, n)).collect()
}

/// The disk of the log does not answer for a while.
fn acks_wait_for(slow: impl Fn(&Operation<'_>) -> bool + Send + 'static) {
    let inner = FaultyDisk::new();
    let disk = SlowDisk::new(inner.clone());
    let (store, _) = open(&disk, bounded()).unwrap();
    let kept = keep(&store, device(&store), 0, 0).unwrap();
    let held = disk.hold(slow);
    let (rows, reason) = write_until_busy(&store, 1);
    assert!(reason.contains("log bytes wait for the disk"), "{reason}");
    eventually(|| (held.waiting() == 1).then_some(()));
    let (status, progress) = (store.status(), store.progress());
    assert_eq!(progress.durable, kept, "no ack without a sync");
    assert!(status.log_pending_bytes <= LOG_MAX as u64, "{status:?}");
    assert!(status.memtable_bytes <= MEMORY_MAX as u64, "{status:?}");
    assert_eq!(numbers(&store, device(&store)).unwrap(), expected(rows), "reads continue");
    // One operation later there is room for more rows, and some are acked.
    eventually(|| {
        held.let_pass(1);
        (store.progress().durable > kept).then_some(())
    });
    let ticket = eventually(|| {
        held.let_pass(1);
        put(&store, device(&store), rows, rows, Durability::Fsync).ok()
    });
    // A close that must wait is still an orderly one.
    std::thread::scope(|scope| {
        let held = held;
        let close = scope.spawn(|| store.close());
        eventually(|| matches!(store.flush(), Err(StoreError::Closed)).then_some(()));
        drop(held);
        close.join().unwrap().unwrap();
    });
    assert_eq!(store.progress().durable, ticket);
    drop(store);
    let (store, report) = open(&inner.reboot(Survivors::Synced), bounded()).unwrap();
    assert!(report.damages.is_empty() && report.torn_tail.is_none(), "{report:?}");
    assert_eq!(numbers(&store, device(&store)).unwrap(), expected(rows + 1));
}

#[test]
fn acks_wait_for_a_slow_sync() {
    acks_wait_for(|operation| operation.act == Act::Sync && is_log(operation.path));
}

#[test]
fn acks_wait_for_a_slow_write() {
    acks_wait_for(|operation| operation.act == Act::Write && is_log(operation.path));
}

#[test]
fn a_slow_flush_holds_up_no_ack_until_memory_is_full() {
    let disk = SlowDisk::new(FaultyDisk::new());
    let (store, _) = open(&disk, bounded()).unwrap();
    let parts = disk.hold(|operation| operation.thread == "store-flush" && operation.act == Act::Write);
    let mut rows = 0;
    let reason = eventually(|| match put(&store, device(&store), rows, rows, Durability::Fsync) {
        Ok(ticket) => {
            assert!(reached(&store, Durability::Fsync, ticket));
            rows += 1;
            None
        }
        Err(refused) => Some(refused.to_string()),
    });
    assert!(reason.contains("memtable bytes wait for a flush"), "{reason}");
    assert_eq!(parts.waiting(), 1);
    let status = store.status();
    assert!(status.memtable_bytes as usize <= MEMORY_MAX + 256, "one row more: {status:?}");
    assert_eq!(store.progress().durable, store.progress().appended);
    assert_eq!(numbers(&store, device(&store)).unwrap(), expected(rows));
    drop(parts);
    keep_in_the_end(&store, device(&store), rows, rows);
    assert_eq!(numbers(&store, device(&store)).unwrap(), expected(rows + 1));
    store.close().unwrap();
}

/// Whatever operation a merge waits for, the store takes, acks and reads rows.
#[test]
fn a_slow_merge_holds_up_no_append() {
    let on_manifest = |operation: &Operation<'_>| {
        operation.thread == "store-compact"
            && operation.path.to_string_lossy().contains("manifest")
            && operation.act == Act::Sync
    };
    let slow: [fn(&Operation<'_>) -> bool; 2] = [|operation| operation.is_of_merge(), on_manifest];
    for (case, slow) in slow.into_iter().enumerate() {
        let disk = SlowDisk::new(FaultyDisk::new());
        let (store, _) = open(&disk, tiny_manual()).unwrap();
        for n in 0..4 {
            keep(&store, device(&store), n, n).unwrap();
            store.flush().unwrap();
        }
        std::thread::scope(|scope| {
            let held = disk.hold(slow);
            let compaction = scope.spawn(|| store.compact());
            eventually(|| (held.waiting() == 1).then_some(()));
            for n in 4..50 {
                keep(&store, device(&store), n, n).unwrap();
            }
            if case == 0 {
                store.flush().unwrap(); // an edit of the manifest waits for the one before
            }
            assert_eq!(numbers(&store, device(&store)).unwrap(), expected(50));
            assert_eq!((held.waiting(), store.status().busy), (1, None));
            drop(held);
            compaction.join().unwrap().unwrap();
        });
        assert_eq!(numbers(&store, device(&store)).unwrap(), expected(50));
        assert!(store.status().parts <= 2);
        store.close().unwrap();
    }
}
