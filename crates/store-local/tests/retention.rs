//! Tests of retention: it drops rows by the day and durably, and never a younger row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{SeriesId, SeriesKey, Timestamp, Value};
use store::conformance::{batch_of, collect, scan_all};
use store::{Durability, MemoryStore, Store, StoreError};
use store::{Maintenance, Reader, Writer, conformance};
use store_local::{Clock, LocalStore, Observer, Options};
use testkit::{FaultyDisk, Survivors};

use crate::support::{drop_at, eventually, files, keep, numbers, open, tiny_leaping};

const DAY_US: i64 = 86_400_000_000;
const DAY: Duration = Duration::from_secs(86_400);

fn device(store: &LocalStore, table: &str) -> SeriesId {
    store.series(&SeriesKey::device(table, "d").unwrap()).unwrap()
}

/// Appends a row at noon of each of these days, and flushes.
fn fill(store: &LocalStore, table: &str, days: std::ops::Range<i64>) {
    let series = device(store, table);
    for day in days {
        keep(store, series, day * DAY_US + DAY_US / 2, day).unwrap();
        store.flush().unwrap();
    }
}

fn days(store: &LocalStore, table: &str) -> Vec<i64> {
    numbers(store, device(store, table)).unwrap().into_iter().map(|(_, day)| day).collect()
}

#[test]
fn days_go_by_the_ttl_of_their_table_and_stay_gone() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_leaping()).unwrap();
    for table in ["short", "long", "for good"] {
        fill(&store, table, 0..10);
    }
    store.set_ttl(&conformance::table("short"), Some(2 * DAY)).unwrap();
    store.set_ttl(&conformance::table("long"), Some(5 * DAY)).unwrap();
    assert_eq!(store.latest(device(&store, "short"), None).unwrap()[0].value, Value::I64(9));
    // Day 7 of `short` ends at midnight of day 8, which is as old as its rows may be; day 8 has rows that are younger.
    assert_eq!(drop_at(&store, 10), 8 + 5);
    let check = |store: &LocalStore| {
        assert_eq!(days(store, "short"), [8, 9]);
        assert_eq!(days(store, "long"), [5, 6, 7, 8, 9]);
        assert_eq!(days(store, "for good"), (0..10).collect::<Vec<_>>());
    };
    check(&store);
    assert_eq!(drop_at(&store, 10), 0);
    eventually(|| (files(&disk, ".parquet").len() == 17).then_some(()));
    drop(store);
    let (store, report) = open(&disk.reboot(Survivors::Synced), tiny_leaping()).unwrap();
    assert!(report.damages.is_empty(), "{report:?}");
    check(&store);
    assert_eq!(
        (
            store.ttl(&conformance::table("short")),
            store.ttl(&conformance::table("long")),
            store.ttl(&conformance::table("for good"))
        ),
        (Some(2 * DAY), Some(5 * DAY), None)
    );
    assert_eq!(drop_at(&store, 100), 2 + 5);
    assert_eq!(store.latest(device(&store, "short"), None).unwrap(), []);
    assert_eq!(days(&store, "for good").len(), 10);
}

#[test]
fn a_latest_value_goes_with_its_row() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_leaping()).unwrap();
    fill(&store, "t", 0..1);
    let series = device(&store, "t");
    store.set_ttl(&conformance::table("t"), Some(DAY)).unwrap();
    assert_eq!(store.latest(series, None).unwrap().len(), 1);
    assert_eq!(drop_at(&store, 2), 1);
    assert_eq!(store.latest(series, None).unwrap(), []);
    keep(&store, series, 5 * DAY_US, 5).unwrap();
    assert_eq!(store.latest(series, None).unwrap()[0].value, Value::I64(5));
}

#[test]
fn rows_in_memory_go_like_others_and_stay_gone_after_a_power_cut() {
    for rows in [1, 20] {
        // In the open chunk only, or in frozen ones too.
        let disk = FaultyDisk::new();
        let (store, _) = open(&disk, tiny_leaping()).unwrap();
        let reference = MemoryStore::new();
        for store in [&store as &dyn Store, &reference] {
            store.set_ttl(&conformance::table("t"), Some(DAY)).unwrap();
            for (table, day) in [("t", 0), ("t", 9), ("kept", 0)] {
                let series = store.series(&SeriesKey::device(table, "d").unwrap()).unwrap();
                for n in 0..rows {
                    let row = (day * DAY_US + n, &[("n", Value::I64(day))][..]);
                    store.append(&batch_of(series, &[row]), Durability::Fsync).unwrap();
                }
            }
        }
        let check = |store: &LocalStore| {
            for table in ["t", "kept"] {
                let key = SeriesKey::device(table, "d").unwrap();
                let find = |store: &dyn Store| {
                    collect(store, &scan_all(store.find_series(&key).unwrap(), &["n"])).unwrap()
                };
                assert_eq!(find(store), find(&reference), "{table}");
            }
        };
        check(&store);
        reference.drop_expired(Timestamp::from_micros(10 * DAY_US)).unwrap();
        let mut dropped = 0;
        eventually(|| {
            dropped += drop_at(&store, 10);
            (dropped > 0).then_some(())
        });
        assert_eq!(dropped as i64, rows);
        check(&store);
        assert_eq!((store.status().memtable_bytes, drop_at(&store, 10)), (0, 0), "and no flush for nothing");
        drop(store);
        check(&open(&disk.reboot(Survivors::Synced), tiny_leaping()).unwrap().0);
    }
}

#[test]
fn rows_in_memory_that_are_kept_are_not_flushed_by_a_look() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_leaping()).unwrap();
    store.set_ttl(&conformance::table("t"), Some(DAY)).unwrap();
    keep(&store, device(&store, "t"), 9 * DAY_US, 9).unwrap();
    keep(&store, device(&store, "for good"), 0, 0).unwrap();
    assert_eq!(drop_at(&store, 10), 0);
    // Nothing was asked for, so this flush is the first.
    store.flush().unwrap();
    assert_eq!(files(&disk, ".parquet").len(), 2, "one of each table");
    assert_eq!((days(&store, "t"), days(&store, "for good")), (vec![9], vec![0]));
}

#[test]
fn a_default_holds_for_tables_of_which_nobody_has_said_anything() {
    let disk = FaultyDisk::new();
    let options = Options { ttl_default: Some(3 * DAY), ..tiny_leaping() };
    let (store, _) = open(&disk, options).unwrap();
    fill(&store, "t", 0..3);
    fill(&store, "kept", 0..3);
    store.set_ttl(&conformance::table("kept"), None).unwrap();
    assert_eq!(
        (
            store.ttl(&conformance::table("t")),
            store.ttl(&conformance::table("kept")),
            store.ttl(&conformance::table("unknown"))
        ),
        (Some(3 * DAY), None, Some(3 * DAY))
    );
    assert_eq!(drop_at(&store, 5), 2);
    assert_eq!((days(&store, "t"), days(&store, "kept")), (vec![2], vec![0, 1, 2]));
}

#[test]
fn a_ttl_is_durable_when_it_was_taken() {
    let disk = FaultyDisk::new();
    let work = |disk: &FaultyDisk| -> Result<usize, StoreError> {
        let mut taken = 0;
        let attempt = |taken: &mut usize| -> Result<(), StoreError> {
            let (store, _) = open(disk, tiny_leaping())?;
            for round in 1..5 {
                store.set_ttl(&conformance::table("t"), Some(round * DAY))?;
                *taken = round as usize;
                keep(&store, store.series(&SeriesKey::device("t", "d").unwrap())?, 0, i64::from(round));
            }
            Ok(())
        };
        let _ = attempt(&mut taken);
        Ok(taken)
    };
    work(&disk).unwrap();
    for operation in 0..disk.operations() {
        let disk = FaultyDisk::new();
        disk.cut_power_at(operation);
        let taken = work(&disk).unwrap() as u32;
        for survivors in [Survivors::Synced, Survivors::All, Survivors::Random(operation)] {
            let (store, report) = open(&disk.reboot(survivors), tiny_leaping()).unwrap();
            assert!(report.damages.is_empty(), "{operation} {survivors:?}: {report:?}");
            let found = store.ttl(&conformance::table("t"));
            let possible = [taken, taken + 1].map(|days| (days > 0).then_some(days * DAY));
            assert!(possible.contains(&found), "{operation} {survivors:?}: {found:?} after {taken}");
        }
    }
}

#[test]
fn a_merge_and_a_drop_do_not_bring_rows_back() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_leaping()).unwrap();
    store.set_ttl(&conformance::table("t"), Some(DAY)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..40).for_each(|_| store.compact().unwrap()));
        for day in 0..40 {
            for _ in 0..3 {
                fill(&store, "t", day..day + 1);
            }
            drop_at(&store, day);
        }
    });
    drop_at(&store, 40);
    assert_eq!(days(&store, "t"), [39]);
    store.compact().unwrap();
    assert_eq!(days(&store, "t"), [39]);
}

/// A clock that goes as the test says, and what the store says of the other one.
#[derive(Default)]
struct Hours(AtomicU64, AtomicU64);

impl Clock for Hours {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::SeqCst) * 3_600_000_000
    }
}

impl Observer for Hours {
    fn synced(&self, _: Duration, _: u64, _: u64) {}

    fn clock_ahead(&self, ahead: Duration) {
        self.1.store(ahead.as_secs() / 86_400, Ordering::SeqCst);
    }
}

#[test]
fn a_wall_clock_that_leaps_ahead_takes_nothing_with_it_not_even_over_a_restart() {
    let disk = FaultyDisk::new();
    let hours = Arc::new(Hours::default());
    let options =
        || Options { clock: hours.clone(), observer: Some(hours.clone()), ..crate::support::tiny_manual() };
    let drop_by = |store: &LocalStore, day: i64| {
        store.drop_expired(Timestamp::from_micros(day * DAY_US + DAY_US / 2)).unwrap()
    };
    let (store, _) = open(&disk, options()).unwrap();
    fill(&store, "t", 0..10);
    store.set_ttl(&conformance::table("t"), Some(5 * DAY)).unwrap();
    assert_eq!(drop_by(&store, 9), 4, "the clock is right");
    assert_eq!(hours.1.load(Ordering::SeqCst), 0);
    assert_eq!(drop_by(&store, 30_000), 0);
    assert!((29_990..=29_991).contains(&hours.1.load(Ordering::SeqCst)), "it gets a notice");
    // Rows with times as wrong as the clock do not confirm the clock.
    keep(&store, device(&store, "wrong"), 30_000 * DAY_US, 1).unwrap();
    store.flush().unwrap();
    assert_eq!(drop_by(&store, 30_000), 0);
    drop(store);
    let (store, _) = open(&disk.reboot(Survivors::Synced), options()).unwrap();
    assert_eq!(drop_by(&store, 30_000), 0);
    assert_eq!(days(&store, "t"), [4, 5, 6, 7, 8, 9]);
    // Right again: two days later, of which the store was off for most.
    hours.0.fetch_add(1, Ordering::SeqCst);
    assert_eq!(drop_by(&store, 11), 1, "a day in an hour");
    hours.0.fetch_add(1, Ordering::SeqCst);
    assert_eq!(drop_by(&store, 11), 1);
    assert_eq!(days(&store, "t"), [6, 7, 8, 9]);
    // Behind: nothing is dropped, and nothing needs to be caught up with afterwards.
    assert_eq!((drop_by(&store, -5_000), drop_by(&store, 11)), (0, 0));
    hours.0.fetch_add(1, Ordering::SeqCst);
    assert_eq!(drop_by(&store, 12), 1);
}
