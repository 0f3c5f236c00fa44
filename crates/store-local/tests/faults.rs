//! Tests of a failing disk: acked rows stay, refusals have their reason, and no call hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{SeriesId, SeriesKey, Value};
use store::conformance::batch_of;
use store::{
    Blame, Durability, Maintenance, Progress, ProgressWatcher, Reader, Store, StoreError, Writer, conformance,
};
use store_local::{Clock, LocalStore, Options, RealDisk};
use testkit::{FaultyDisk, Survivors};

use crate::support::{eventually, keep, numbers, open, put, reached, tiny, tiny_manual};

fn device(store: &LocalStore, name: &str) -> SeriesId {
    store.series(&SeriesKey::device("t", name).unwrap()).unwrap()
}

fn wait_sealed(store: &LocalStore) -> String {
    eventually(|| store.status().sealed)
}

#[test]
fn a_failed_sync_seals_and_reads_continue() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let series = device(&store, "d");
    let kept = keep(&store, series, 1, 1).unwrap();
    disk.fail_syncs(true);
    let ticket = put(&store, series, 2, 2, Durability::Fsync).unwrap();
    assert!(!reached(&store, Durability::Fsync, ticket));
    assert!(wait_sealed(&store).contains("cannot sync"), "{:?}", store.status());

    // A later successful sync does not cover the bytes that the failed one has lost, so the store does not retry.
    disk.fail_syncs(false);
    let refused = put(&store, series, 3, 3, Durability::Memory).unwrap_err();
    assert!(matches!(&refused, StoreError::Sealed { cause } if cause.contains("cannot sync")), "{refused}");
    assert_eq!(refused.blame(), Blame::Operator);
    assert!(matches!(store.flush(), Err(StoreError::Sealed { .. })));
    assert!(matches!(store.close(), Err(StoreError::Sealed { .. })));
    assert_eq!(store.progress().durable, kept);
    assert_eq!(numbers(&store, series).unwrap(), [(1, 1), (2, 2)]);
    assert_eq!(store.latest(series, None).unwrap()[0].value, Value::I64(2));

    let disk = disk.reboot(Survivors::Synced);
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    assert_eq!(numbers(&store, device(&store, "d")).unwrap(), [(1, 1)]);
}

/// Lets each single operation fail. The store reports it or continues, and loses no acked row.
#[test]
fn an_error_at_any_operation_loses_no_acked_row() {
    let options = Options { preallocate: true, segment_bytes: 1024, ..tiny_manual() };
    let work = |disk: &FaultyDisk, acked: &mut Vec<(i64, i64)>| -> Result<(), StoreError> {
        for _ in 0..2 {
            let (store, report) = open(disk, options.clone())?;
            assert!(report.damages.is_empty(), "{report:?}");
            let series = store.series(&SeriesKey::device("t", "d").unwrap())?;
            for _ in 0..8 {
                let n = acked.len() as i64;
                let ticket = put(&store, series, n, n, Durability::Fsync)?;
                if reached(&store, Durability::Fsync, ticket) {
                    acked.push((n, n));
                }
                if n % 3 == 0 {
                    store.flush()?;
                }
            }
            store.close()?;
        }
        Ok(())
    };
    let disk = FaultyDisk::new();
    work(&disk, &mut Vec::new()).unwrap();
    for operation in 0..disk.operations() {
        let disk = FaultyDisk::new();
        let mut acked = Vec::new();
        disk.fail_at(operation, libc::EIO);
        let _ = work(&disk, &mut acked);
        for survivors in [Survivors::Synced, Survivors::Random(operation)] {
            let disk = disk.reboot(survivors);
            let (store, report) = open(&disk, options.clone()).unwrap();
            assert!(report.damages.is_empty(), "failed at {operation}: {report:?}");
            let found = numbers(&store, device(&store, "d")).unwrap();
            assert_eq!(found[..acked.len()], acked, "failed at {operation}, {survivors:?}");
            assert!(found.len() <= acked.len() + 1, "failed at {operation}: only one row was in flight");
        }
    }
}

#[derive(Default)]
struct Calls(AtomicU64);

impl ProgressWatcher for Calls {
    fn progress(&self, _progress: Progress) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_full_disk_is_backpressure_until_space_returns() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let series = device(&store, "d");
    keep(&store, series, 0, 0).unwrap();
    disk.set_capacity(Some(disk.used_bytes() + 100));

    // The store took the batch before it knew that the disk is full. It keeps the batch and retries.
    let mut taken = 0;
    let busy = loop {
        match put(&store, series, taken + 1, taken + 1, Durability::Fsync) {
            Ok(_) => taken += 1,
            Err(busy) => break busy,
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    };
    assert_eq!(busy.blame(), Blame::Busy);
    assert!(busy.to_string().contains("disk is full"), "{busy}");
    assert!(store.status().busy.is_some() && store.status().sealed.is_none());
    assert_eq!(numbers(&store, series).unwrap().len() as i64, taken + 1);

    let calls = Arc::new(Calls::default());
    store.watch(calls.clone());
    disk.set_capacity(None);
    let last = store.progress().appended;
    assert!(reached(&store, Durability::Fsync, last));
    eventually(|| store.status().busy.is_none().then_some(()));
    assert!(calls.0.load(Ordering::Relaxed) > 0, "the watcher that waits for room is notified");
    keep(&store, series, 1_000, 1_000).unwrap();
    let disk = disk.reboot(Survivors::Synced);
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    assert_eq!(numbers(&store, device(&store, "d")).unwrap().len() as i64, taken + 2);
}

#[test]
fn a_flush_waits_for_space_and_then_completes() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let series = device(&store, "d");
    for n in 0..20 {
        keep(&store, series, n, n).unwrap();
    }
    disk.set_capacity(Some(disk.used_bytes() + 200));
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| store.flush());
        let reason = eventually(|| store.status().busy);
        assert!(reason.contains("disk is full"), "{reason}");
        assert_eq!(numbers(&store, series).unwrap().len(), 20);
        disk.set_capacity(None);
        flush.join().unwrap().unwrap();
    });
    assert_eq!((store.status().parts, store.status().memtable_bytes), (1, 0));
    assert_eq!(store.status().busy, None);
    assert_eq!(numbers(&store, series).unwrap().len(), 20);
}

/// No descriptors are left while the log needs its next segment, a flush its parts and a merge its inputs, and the manifest
/// is rewritten each time.
#[test]
fn a_process_without_descriptors_waits_for_them_and_seals_nothing() {
    let disk = FaultyDisk::new();
    let options = Options { segment_bytes: 512, manifest_rewrite_bytes: 1, ..tiny_manual() };
    let (store, _) = open(&disk, options.clone()).unwrap();
    let series = device(&store, "d");
    for round in 0..20 {
        keep(&store, series, 10 * round, round).unwrap();
        let taken = disk.operations();
        disk.take_descriptors(true);
        let mut tickets = Vec::new();
        std::thread::scope(|scope| {
            let work = scope.spawn(|| store.flush().and_then(|()| store.compact()));
            for n in 1..10 {
                tickets.extend(put(&store, series, 10 * round + n, round, Durability::Fsync).ok());
            }
            eventually(|| (disk.operations() > taken + 10).then_some(()));
            assert_eq!(store.status().sealed, None, "round {round}");
            disk.take_descriptors(false);
            work.join().unwrap().unwrap();
        });
        assert!(tickets.iter().all(|ticket| reached(&store, Durability::Fsync, *ticket)), "round {round}");
        assert_eq!((store.status().sealed, store.status().busy), (None, None), "round {round}");
    }
    let before = numbers(&store, series).unwrap();
    for survivors in [Survivors::Synced, Survivors::Random(7)] {
        let (store, report) = open(&disk.reboot(survivors), options.clone()).unwrap();
        assert!(report.damages.is_empty(), "{report:?}");
        assert_eq!(numbers(&store, device(&store, "d")).unwrap(), before, "{survivors:?}");
    }
}

/// The directory cannot be opened for its sync after the new manifest has replaced the old one.
#[test]
fn a_manifest_whose_name_is_not_durable_accepts_no_edit() {
    let disk = FaultyDisk::new();
    let options = Options { manifest_rewrite_bytes: 1, ..tiny_manual() };
    let (store, _) = open(&disk, options.clone()).unwrap();
    let series = device(&store, "d");
    for n in 0..4 {
        keep(&store, series, n, n).unwrap();
        store.flush().unwrap();
    }
    keep(&store, series, 4, 4).unwrap();
    let (work, expected) = (disk.operations(), numbers(&store, series).unwrap());
    drop(store);
    for after in 0..60 {
        let disk = disk.reboot(Survivors::Synced);
        let (store, _) = open(&disk, options.clone()).unwrap();
        disk.fail_at(disk.operations() + after, libc::EMFILE);
        let _ = store.flush();
        let _ = store.compact();
        for survivors in [Survivors::Synced, Survivors::All, Survivors::Random(after)] {
            let (store, report) = open(&disk.reboot(survivors), options.clone()).unwrap();
            assert!(report.damages.is_empty(), "{after}: {report:?}");
            assert_eq!(
                numbers(&store, device(&store, "d")).unwrap(),
                expected,
                "{after} of {work}, {survivors:?}"
            );
        }
    }
}

#[test]
fn a_frame_larger_than_a_segment_waits_in_one_file() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, Options { segment_bytes: 512, ..tiny_manual() }).unwrap();
    let series = device(&store, "d");
    keep(&store, series, 0, 0).unwrap();
    disk.set_capacity(Some(disk.used_bytes() + 1_000));
    let text = Value::String("x".repeat(3_000));
    let ticket = store.append(&batch_of(series, &[(1, &[("s", text)])]), Durability::Fsync).unwrap();
    eventually(|| store.status().busy);
    let operations = disk.operations();
    eventually(|| (disk.operations() > operations + 20).then_some(()));
    let segments = disk.paths().into_iter().filter(|path| path.to_string_lossy().ends_with(".log")).count();
    assert!(segments <= 3, "{:?}", disk.paths());
    disk.set_capacity(None);
    assert!(reached(&store, Durability::Fsync, ticket));
}

#[test]
fn closing_on_a_full_disk_says_what_was_not_kept() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let series = device(&store, "d");
    let kept = keep(&store, series, 0, 0).unwrap();
    disk.set_capacity(Some(disk.used_bytes()));
    put(&store, series, 1, 1, Durability::Fsync).unwrap();
    let refused = store.close().unwrap_err();
    assert!(matches!(&refused, StoreError::Sealed { cause } if cause.contains("cannot write")), "{refused}");
    assert_eq!(store.progress().durable, kept);
}

#[test]
fn a_read_only_directory_is_refused_with_its_path() {
    let disk = FaultyDisk::new();
    disk.set_read_only(true);
    let refused = open(&disk, tiny()).err().unwrap();
    assert!(matches!(&refused, StoreError::Io { path, .. } if path.starts_with("/data")), "{refused}");
    disk.set_read_only(false);
    drop(open(&disk, tiny()).unwrap());
    disk.set_read_only(true);
    let refused = open(&disk, tiny()).err().unwrap();
    assert!(refused.to_string().contains("/data/LOCK"), "{refused}");
}

#[test]
fn a_disk_that_becomes_read_only_seals() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let series = device(&store, "d");
    keep(&store, series, 0, 0).unwrap();
    disk.set_read_only(true);
    assert_eq!(keep(&store, series, 1, 1), None);
    assert!(wait_sealed(&store).contains("read-only"));
}

/// A clock that goes backwards, jumps ahead and stands still.
struct Drunk(AtomicU64);

impl Clock for Drunk {
    fn now_us(&self) -> u64 {
        let step = self.0.fetch_add(1, Ordering::Relaxed);
        [1_000_000, 5, 5, u64::MAX, 0, 700][step as usize % 6]
    }
}

#[test]
fn a_clock_going_backwards_delays_nothing_for_good() {
    let root = tempfile::tempdir().unwrap();
    let number = AtomicU64::new(0);
    conformance::run(&|| {
        let clock = Arc::new(Drunk(AtomicU64::new(0)));
        let options = Options { clock, commit_interval_us: 500, ..tiny() };
        let dir = root.path().join(number.fetch_add(1, Ordering::Relaxed).to_string());
        Arc::new(LocalStore::open(Arc::new(RealDisk), &dir, options).unwrap().0) as Arc<dyn Store>
    });
}

#[test]
fn bounds_refuse_whole_batches_and_name_themselves() {
    let disk = FaultyDisk::new();
    let options = Options {
        log_pending_bytes_max: 4_000,
        memtable_bytes_max: 20_000,
        memtable_flush_bytes: usize::MAX,
        columns_per_table_max: 5,
        tables_max: 2,
        ..tiny()
    };
    let (store, _) = open(&disk, options).unwrap();
    let series = device(&store, "d");
    let text = Value::String("x".repeat(5_000));
    let large = store.append(&batch_of(series, &[(1, &[("n", text)])]), Durability::Fsync).unwrap_err();
    assert!(matches!(&large, StoreError::OverLimit { limit: 4_000, .. }), "{large}");

    let columns = ["a", "b", "c", "d", "e", "f"].map(|key| (key, Value::I64(1)));
    let wide = store.append(&batch_of(series, &[(1, &columns)]), Durability::Fsync).unwrap_err();
    assert_eq!(wide.to_string(), "columns of a table is 7, the limit is 5");
    let other = device(&store, "e");
    let mut several = batch_of(series, &[(1, &columns[..3]), (2, &columns[2..])]);
    several.extend_from(&batch_of(other, &[(3, &columns[3..5]), (4, &columns[..2])]), 0..2);
    let Err(StoreError::Rows(refused)) = store.append(&several, Durability::Fsync) else {
        panic!("the table has no room for all keys")
    };
    let named: Vec<_> = refused.rows().iter().map(|refused| (refused.row, &refused.fields[..])).collect();
    assert_eq!(named, [(1, &[2, 3][..]), (2, &[1][..])], "keys that come first get their columns");
    assert!(matches!(&refused.rows()[0].reason, StoreError::TooManyColumns { limit: 5, .. }), "{refused:?}");
    assert_eq!(store.progress().appended, 0);

    for table in ["t2", "t3"] {
        let made = store.series(&SeriesKey::new(table, &[]).unwrap());
        assert_eq!(made.is_ok(), table == "t2", "{made:?}");
    }

    // A refused append starts the flush that makes room, so a full memtable loses nothing.
    let mut busy = 0;
    for n in 0..2_000 {
        while let Err(refused) = put(&store, series, n, n, Durability::Memory) {
            assert_eq!(refused.blame(), Blame::Busy, "{refused}");
            busy += 1;
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }
    assert!(busy > 0 && store.status().parts > 0, "{busy} {:?}", store.status());
    assert_eq!(numbers(&store, series).unwrap().len(), 2_000);
}
