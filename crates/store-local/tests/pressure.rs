//! Tests of overlap pressure: when merges do not keep up with writes, the number of overlapping parts stays bounded, and
//! writers must wait. Work continues as soon as merges do.

use std::sync::Arc;
use std::time::Duration;

use model::{SeriesId, SeriesKey, Value};
use parking_lot::Mutex;
use store::conformance::{batch_of, collect, scan_all};
use store::{Blame, Durability, StoreError, StoreStatus};
use store::{Maintenance, Writer, conformance};
use store_local::{CompactionLimits, LocalStore, Observer, Options};
use testkit::{FaultyDisk, HeldOperations, SlowDisk, Survivors};

use crate::support::{
    drop_at, eventually, files, keep, keep_in_the_end, numbers, open, put, reached, tiny, tiny_leaping,
    tiny_manual,
};

/// Limit of [`tiny`].
const OVERLAP_MAX: u64 = 12;
const DAY: i64 = 86_400_000_000;

fn device(store: &LocalStore) -> SeriesId {
    store.series(&SeriesKey::device("t", "d").unwrap()).unwrap()
}

fn pressed() -> Options {
    // No part is full, so all of them count.
    let compaction =
        CompactionLimits { part_bytes_max: 1 << 20, part_rows_max: 1 << 20, ..tiny().compaction };
    let (memtable_flush_bytes, memtable_bytes_max) = (2 * 1024, 12 * 1024);
    Options { memtable_flush_bytes, memtable_bytes_max, compaction, ..tiny() }
}

/// Collects the reports of the store about flushes that wait for merges, and about damage.
#[derive(Default)]
struct Told {
    held: Mutex<Vec<Option<String>>>,
    damaged: Mutex<usize>,
}

impl Observer for Told {
    fn synced(&self, _duration: Duration, _bytes: u64, _rows: u64) {}

    fn flush_held(&self, why: Option<&str>) {
        self.held.lock().push(why.map(str::to_owned));
    }

    fn damaged(&self, _error: &StoreError) {
        *self.damaged.lock() += 1;
    }
}

fn told(options: Options) -> (Arc<Told>, Options) {
    let told = Arc::new(Told::default());
    (told.clone(), Options { observer: Some(told), ..options })
}

/// Appends rows until the store refuses one because of overlapping parts. Returns the number of taken rows and the reason.
fn write_until_held(mut append: impl FnMut(i64) -> Result<u64, StoreError>) -> (i64, String) {
    let mut taken = 0;
    eventually(|| {
        loop {
            match append(taken) {
                Ok(_) => taken += 1,
                Err(refused) => {
                    assert_eq!(refused.blame(), Blame::Busy, "{refused}");
                    let reason = refused.to_string();
                    // Otherwise a flush is in progress.
                    return reason.contains("overlap").then_some((taken, reason));
                }
            }
        }
    })
}

fn eventually_free(store: &LocalStore) -> StoreStatus {
    eventually(|| {
        let status = store.status();
        (status.busy.is_none() && status.flush_held.is_none()).then_some(status)
    })
}

/// A store whose merges are held back and whose flushes wait for them, and the number of its rows.
fn held(disk: &SlowDisk, options: Options) -> (LocalStore, HeldOperations, i64) {
    let (store, _) = open(disk, options).unwrap();
    let merges = disk.hold(|operation| operation.is_of_merge());
    let series = device(&store);
    let (rows, _) = write_until_held(|n| put(&store, series, n, n, Durability::Memory));
    (store, merges, rows)
}

fn expected(rows: i64) -> Vec<(i64, i64)> {
    (0..rows).map(|n| (n, n)).collect()
}

#[test]
fn writers_wait_for_merges_and_continue_after_them() {
    let disk = SlowDisk::new(FaultyDisk::new());
    let (told, options) = told(pressed());
    let memory_max = options.memtable_bytes_max as u64;
    let (store, merges, rows) = held(&disk, options);
    let status = store.status();
    assert_eq!(status.parts_overlap_max, OVERLAP_MAX);
    assert!(status.memtable_bytes <= memory_max + 256, "one row more: {status:?}");
    let why = status.flush_held.unwrap();
    assert_eq!(why, "12 parts of the table t overlap and must be merged first, the limit is 12");
    assert_eq!(status.busy.as_ref(), Some(&why));
    assert_eq!(told.held.lock()[..], [Some(why)]);
    // It stays so, and reads are not affected.
    let series = device(&store);
    assert_eq!(put(&store, series, rows, rows, Durability::Fsync).unwrap_err().blame(), Blame::Busy);
    assert_eq!(numbers(&store, series).unwrap(), expected(rows));

    drop(merges);
    eventually_free(&store);
    keep_in_the_end(&store, series, rows, rows);
    assert_eq!(told.held.lock()[1], None);
    assert_eq!(numbers(&store, series).unwrap(), expected(rows + 1));
    eventually(|| (store.status().parts_overlap_max < OVERLAP_MAX).then_some(()));
    store.close().unwrap();
}

/// Flushes are as fast as merges: the end of each merge lets some flushes begin.
#[test]
fn parts_that_overlap_never_exceed_the_limit_however_long_it_continues() {
    let disk = SlowDisk::new(FaultyDisk::new());
    let (store, merges, mut rows) = held(&disk, pressed());
    let series = device(&store);
    while rows < 3_000 {
        merges.let_pass(5);
        match put(&store, series, rows, rows, Durability::Memory) {
            Ok(_) => rows += 1,
            Err(refused) => assert_eq!(refused.blame(), Blame::Busy, "{refused}"),
        }
        let overlap = store.status().parts_overlap_max;
        assert!(overlap <= OVERLAP_MAX, "{overlap} parts overlap");
    }
    drop(merges);
    assert_eq!(numbers(&store, series).unwrap(), expected(rows));
    store.close().unwrap();
}

#[test]
fn parts_that_tables_share_have_the_same_limit() {
    let disk = SlowDisk::new(FaultyDisk::new());
    let (store, _) = open(&disk, pressed()).unwrap();
    let merges = disk.hold(|operation| operation.is_of_merge());
    let series = ["u", "v"].map(|table| store.series(&SeriesKey::device(table, "d").unwrap()).unwrap());
    let (rows, reason) = write_until_held(|n| {
        let number = Value::F64(n as f64);
        put(&store, series[n as usize % 2], n, number, Durability::Memory)
    });
    assert!(reason.contains("12 parts of tables that share parts overlap"), "{reason}");
    drop(merges);
    eventually_free(&store);
    let found = series.map(|series| numbers(&store, series).unwrap().len() as i64);
    assert_eq!(found, [(rows + 1) / 2, rows / 2]);
}

/// Text that does not compress well.
fn noise(n: i64) -> String {
    let mut state = n as u64 ^ 0x9E37_79B9_7F4A_7C15;
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state % 90) as u8)
    };
    (0..200).map(letter).collect()
}

fn put_noise(store: &LocalStore, series: SeriesId, n: i64) -> Result<u64, StoreError> {
    let fields = [("n", Value::I64(n)), ("s", Value::String(noise(n)))];
    store.append(&batch_of(series, &[(n, &fields)]), Durability::Fsync)
}

/// A store whose merges lack space while the log has some, and the number of its rows, which are all acked.
fn full() -> (FaultyDisk, LocalStore, i64) {
    let inner = FaultyDisk::new();
    let disk = SlowDisk::new(inner.clone());
    let options = Options { memtable_flush_bytes: 8 * 1024, memtable_bytes_max: 24 * 1024, ..pressed() };
    let (store, _) = open(&disk, options).unwrap();
    let series = device(&store);
    let merges = disk.hold(|operation| operation.is_of_merge());
    // Until the next flush waits, while memory has room.
    let mut rows = 0;
    eventually(|| {
        let status = store.status();
        // Not while a flush is requested, because it may wait, and memory would be full by then.
        if status.memtable_bytes < 8 * 1024 && put_noise(&store, series, rows).is_ok() {
            rows += 1;
        }
        status.flush_held
    });
    // More than the 15 KiB that the log of the memory takes, less than a merge of three parts of 9 KiB each.
    inner.set_capacity(Some(inner.used_bytes() + 20 * 1024));
    drop(merges);
    let before = rows;
    let (more, reason) = write_until_held(|n| put_noise(&store, series, before + n));
    rows += more;
    assert!(more > 20, "writes continue until memory is full: {more}");
    assert!(reason.contains("memtable bytes wait for a flush"), "{reason}");
    let why = eventually(|| store.status().busy.filter(|why| why.contains("disk is full")));
    assert!(why.contains("free some space"), "{why}");
    let last = store.progress().appended;
    assert!(reached(&store, Durability::Fsync, last), "the log has room");
    (inner, store, rows)
}

fn texts(store: &LocalStore) -> Vec<(i64, String)> {
    let found = collect(store, &scan_all(device(store), &["s"])).unwrap();
    let text = |(ts, values): (i64, Vec<Option<Value>>)| match values.as_slice() {
        [Some(Value::String(text))] => (ts, text.clone()),
        other => panic!("not a text at {ts}: {other:?}"),
    };
    found.into_iter().map(text).collect()
}

fn expected_texts(rows: i64) -> Vec<(i64, String)> {
    (0..rows).map(|n| (n, noise(n))).collect()
}

#[test]
fn a_disk_too_full_for_merges_is_back_pressure_until_space_returns() {
    let (disk, store, rows) = full();
    // However often the merge retries, it leaves no file behind and loses no row.
    let operations = disk.operations();
    eventually(|| (disk.operations() > operations + 20).then_some(()));
    let status = store.status();
    assert_eq!((status.sealed, status.parts_overlap_max), (None, OVERLAP_MAX));
    assert_eq!(texts(&store), expected_texts(rows));
    disk.set_capacity(None);
    eventually_free(&store);
    let series = device(&store);
    let ticket = eventually(|| put_noise(&store, series, rows).ok());
    assert!(reached(&store, Durability::Fsync, ticket));
    eventually(|| (store.status().parts_overlap_max < OVERLAP_MAX).then_some(()));
    assert_eq!(texts(&store), expected_texts(rows + 1));
    store.close().unwrap();
    drop(store);
    let (store, report) = open(&disk.reboot(Survivors::Synced), pressed()).unwrap();
    assert!(report.damages.is_empty(), "{report:?}");
    assert_eq!(texts(&store), expected_texts(rows + 1));
}

#[test]
fn a_store_whose_flush_waits_closes_and_opens_again() {
    let (disk, store, rows) = full();
    store.close().unwrap();
    drop(store);
    // The disk is as full as before: the store serves the written rows, and further ones must wait.
    let (store, report) = open(&disk, pressed()).unwrap();
    assert!(report.damages.is_empty(), "{report:?}");
    assert_eq!(texts(&store), expected_texts(rows));
    drop(store);
    let (store, _) = open(&disk.reboot(Survivors::Synced), pressed()).unwrap();
    assert_eq!(texts(&store), expected_texts(rows));
    let ticket = eventually(|| put_noise(&store, device(&store), rows).ok());
    assert!(reached(&store, Durability::Fsync, ticket));
    eventually_free(&store);
    store.close().unwrap();
}

#[test]
fn damaged_parts_hold_up_no_writer() {
    let disk = FaultyDisk::new();
    {
        let (store, _) = open(&disk, tiny_manual()).unwrap();
        for n in 0..2 * OVERLAP_MAX as i64 {
            keep(&store, device(&store), 1_000 + n, n).unwrap();
            store.flush().unwrap();
        }
        store.close().unwrap();
    }
    let parts = files(&disk, ".parquet");
    for part in &parts {
        let mut bytes = disk.content(part);
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        disk.set_content(part, bytes);
    }
    let (told, options) = told(pressed());
    let (store, _) = open(&disk, options).unwrap();
    // Another table, because a read of this one would not end.
    let other = store.series(&SeriesKey::device("other", "d").unwrap()).unwrap();
    for n in 0..300 {
        keep_in_the_end(&store, device(&store), n, n);
        keep_in_the_end(&store, other, n, n);
    }
    assert_eq!(numbers(&store, other).unwrap(), expected(300));
    eventually(|| (*told.damaged.lock() == parts.len()).then_some(()));
    let status = store.status();
    assert!(status.parts_overlap_max > 2 * OVERLAP_MAX, "they are all there: {status:?}");
    eventually_free(&store);
    store.close().unwrap();
}

#[test]
fn dropping_old_rows_makes_room_without_a_merge() {
    let disk = SlowDisk::new(FaultyDisk::new());
    let clock = tiny_leaping().clock;
    let (store, merges, rows) = held(&disk, Options { clock, ..pressed() });
    store.set_ttl(&conformance::table("t"), Some(Duration::from_secs(86_400))).unwrap();
    let series = device(&store);
    assert!(drop_at(&store, 10) > 0);
    keep_in_the_end(&store, series, 9 * DAY, rows);
    eventually_free(&store);
    assert!(merges.waiting() > 0, "the merge has not gone on");
    drop(merges);
    assert_eq!(numbers(&store, series).unwrap().last(), Some(&(9 * DAY, rows)));
    store.close().unwrap();
}

#[test]
fn a_copy_of_the_parts_does_not_wait_for_merges() {
    let disk = SlowDisk::new(FaultyDisk::new());
    let (store, merges, rows) = held(&disk, pressed());
    store.flush().unwrap();
    let status = store.status();
    assert_eq!((status.memtable_bytes, status.parts_overlap_max), (0, OVERLAP_MAX + 1));
    keep(&store, device(&store), rows, rows).unwrap();
    let copy = store.files().unwrap();
    assert!(copy.files().len() as u64 > OVERLAP_MAX);
    drop((copy, merges));
    eventually_free(&store);
    assert_eq!(numbers(&store, device(&store)).unwrap(), expected(rows + 1));
}
