//! Tests of panics in the store: what they end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::SeriesKey;
use parking_lot::Mutex;
use store::{Durability, StoreError};
use store::{Maintenance, Reader, Writer, conformance};
use store_local::{LocalStore, Observer, Options};
use testkit::own_process::{in_own_process, told_before_abort};
use testkit::{Act, FaultyDisk, HeldOperations, Operation, SlowDisk};

use crate::support::{files, keep, numbers, open, put, tiny_manual};

/// Makes such operations panic from now on.
fn panics(disk: &SlowDisk, at: fn(&Operation<'_>) -> bool) -> HeldOperations {
    disk.hold(move |operation| {
        assert!(!at(operation), "a bug at {}", operation.path.display());
        false
    })
}

fn four_parts(disk: &SlowDisk, options: Options) -> LocalStore {
    let (store, _) = open(disk, options).unwrap();
    let series = store.series(&SeriesKey::device("t", "d").unwrap()).unwrap();
    for n in 0..4 {
        keep(&store, series, n, n).unwrap();
        store.flush().unwrap();
    }
    store
}

#[test]
fn a_panic_of_the_log_thread_ends_the_process() {
    let ended = in_own_process(|| {
        let disk = SlowDisk::new(FaultyDisk::new());
        let store = four_parts(&disk, tiny_manual());
        let _held = panics(&disk, |operation| operation.thread == "store-log" && operation.act == Act::Write);
        let series = store.find_series(&SeriesKey::device("t", "d").unwrap()).unwrap();
        put(&store, series, 4, 4, Durability::Fsync).unwrap();
        let _ = store.close();
    });
    assert!(told_before_abort(&ended).contains("a bug at"));
}

#[test]
fn a_panic_within_a_change_ends_the_process_on_whatever_thread() {
    let ended = in_own_process(|| {
        let disk = SlowDisk::new(FaultyDisk::new());
        let store = four_parts(&disk, tiny_manual());
        let _held = panics(&disk, |operation| operation.path.to_string_lossy().contains("manifest"));
        let ttl = Some(Duration::from_secs(60));
        let _ = catch_unwind(AssertUnwindSafe(|| store.set_ttl(&conformance::table("t"), ttl)));
    });
    assert!(told_before_abort(&ended).contains("a bug at"));
}

#[derive(Default)]
struct Failures(Mutex<Vec<String>>);

impl Observer for Failures {
    fn synced(&self, _: Duration, _: u64, _: u64) {}

    fn merge_failed(&self, what: &str) {
        self.0.lock().push(what.to_owned());
    }

    fn damaged(&self, error: &StoreError) {
        panic!("no part is damaged: {error}");
    }
}

fn merge_panics_at(act: Act) {
    let failures = Arc::new(Failures::default());
    let inner = FaultyDisk::new();
    let disk = SlowDisk::new(inner.clone());
    let options = || Options { observer: Some(failures.clone()), ..tiny_manual() };
    let store = four_parts(&disk, options());
    let held = match act {
        Act::Read => panics(&disk, |operation| operation.is_of_merge() && operation.act == Act::Read),
        _ => panics(&disk, |operation| operation.is_of_merge() && operation.act == Act::Write),
    };
    store.compact().unwrap();
    let told = std::mem::take(&mut *failures.0.lock());
    // The two remaining parts are too few for a merge.
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("and 3 other parts panicked: a bug at"), "{told:?}");
    assert_eq!(files(&inner, ".tmp"), Vec::<PathBuf>::new());
    let series = store.find_series(&SeriesKey::device("t", "d").unwrap()).unwrap();
    keep(&store, series, 4, 4).unwrap();
    let expected: Vec<_> = (0..5).map(|n| (n, n)).collect();
    assert_eq!((numbers(&store, series).unwrap(), store.status().parts), (expected.clone(), 4));
    store.close().unwrap();
    drop((held, store));
    let (store, report) = open(&disk, options()).unwrap();
    assert!(report.damages.is_empty(), "{report:?}");
    store.compact().unwrap();
    assert_eq!((numbers(&store, series).unwrap(), store.status().parts), (expected, 1));
    assert!(failures.0.lock().is_empty());
}

#[test]
fn a_panic_of_a_merge_leaves_its_parts_as_they_are_and_the_store_continues() {
    merge_panics_at(Act::Read);
    merge_panics_at(Act::Write);
}

#[test]
fn a_panic_of_a_flush_seals_the_store_which_can_still_be_read() {
    let disk = SlowDisk::new(FaultyDisk::new());
    let store = four_parts(&disk, tiny_manual());
    let series = store.find_series(&SeriesKey::device("t", "d").unwrap()).unwrap();
    keep(&store, series, 4, 4).unwrap();
    let at_flush = |operation: &Operation<'_>| {
        operation.act == Act::Write && operation.path.to_string_lossy().ends_with(".parquet.tmp")
    };
    let held = panics(&disk, at_flush);
    let refused = store.flush().unwrap_err().to_string();
    let cause = "cannot write the rows in memory to /data/parts: BUG: a panic: a bug at";
    assert!(store.status().sealed.unwrap().starts_with(cause), "{refused}");
    assert!(refused.starts_with(&format!("read-only since an earlier write failed ({cause}")), "{refused}");
    let expected: Vec<_> = (0..5).map(|n| (n, n)).collect();
    assert_eq!(numbers(&store, series).unwrap(), expected);
    assert!(store.close().is_err());
    drop((held, store));
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    store.flush().unwrap();
    assert_eq!((numbers(&store, series).unwrap(), store.status().parts), (expected, 5));
}
