//! Records that expire, for the reference and the engine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kv::{
    Direction, EngineOptions, EngineStore, Expiry, KeyRange, KeyValueStore, KvError, MemoryStore, Snapshot,
    Space, SweepBudget, WriteBatch,
};
use proptest::prelude::*;

const A: Space = Space::new("a");
const B: Space = Space::new("b");

/// Small files, so that merges take place.
fn engine(directory: &Path) -> EngineStore {
    let options = EngineOptions { memtable_bytes: 4 << 10, ..EngineOptions::default() };
    EngineStore::open(directory, &options).unwrap()
}

fn on_both(test: impl Fn(&dyn KeyValueStore)) {
    test(&MemoryStore::new());
    let directory = tempfile::tempdir().unwrap();
    test(&engine(directory.path()));
}

/// A value begins with the time after which it has expired; a short one never expires.
fn is_expired(_: &[u8], value: &[u8], now_us: i64) -> bool {
    value.first_chunk().is_some_and(|time| i64::from_be_bytes(*time) <= now_us)
}

fn until(time: i64, more: &str) -> Vec<u8> {
    [&time.to_be_bytes(), more.as_bytes()].concat()
}

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

fn records(snapshot: &dyn Snapshot, space: Space) -> Records {
    let found = snapshot.scan(space, &KeyRange::all(), Direction::Ascending).unwrap();
    found.map(|record| record.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

fn keys(store: &dyn KeyValueStore, space: Space) -> Vec<String> {
    let records = records(&*store.snapshot().unwrap(), space);
    records.into_keys().map(|key| String::from_utf8(key).unwrap()).collect()
}

fn put(store: &dyn KeyValueStore, space: Space, key: &str, value: Vec<u8>) {
    let mut batch = WriteBatch::new();
    batch.put(space, key.to_owned(), value);
    commit(store, &batch);
}

/// Commits when the store is not behind with its files.
fn commit(store: &dyn KeyValueStore, batch: &WriteBatch) {
    while let Err(error) = store.commit(batch) {
        assert!(matches!(error, KvError::Busy { .. }), "{error}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sweeps a whole space in slices. Returns the numbers of records that were read and that had expired.
fn sweep(store: &dyn KeyValueStore, space: Space, now: i64, budget: SweepBudget) -> (u64, u64) {
    let (mut read, mut expired, mut after) = (0, 0, None::<kv::Key>);
    loop {
        let swept = loop {
            match store.sweep(space, &is_expired, now, after.as_deref(), budget) {
                Err(KvError::Busy { .. }) => std::thread::sleep(Duration::from_millis(1)),
                swept => break swept.unwrap(),
            }
        };
        read += swept.read;
        expired += swept.expired;
        assert_eq!(swept.sequence.is_some(), swept.expired > 0);
        match swept.last {
            Some(last) => after = Some(last),
            None => return (read, expired),
        }
    }
}

const SMALL: SweepBudget = SweepBudget { records: 2, bytes: 1 << 20 };

#[test]
fn a_sweep_deletes_what_has_expired_and_nothing_else() {
    on_both(|store| {
        for (key, time) in [("k1", 5), ("k2", 10), ("k3", 11), ("k4", 1), ("k5", 10)] {
            put(store, A, key, until(time, ""));
        }
        put(store, A, "ever", b"short".to_vec());
        put(store, B, "k1", until(5, ""));
        assert_eq!(sweep(store, A, 10, SMALL), (6, 4));
        assert_eq!(keys(store, A), ["ever", "k3"]);
        assert_eq!(keys(store, B), ["k1"]);
        assert_eq!(sweep(store, A, 10, SMALL), (2, 0));
        assert_eq!(sweep(store, Space::new("never"), 10, SMALL), (0, 0));
        // A slice ends at its bytes too, behind the record that reaches them.
        let bytes = SweepBudget { records: 100, bytes: 8 };
        assert_eq!(store.sweep(A, &is_expired, 10, None, bytes).unwrap().last.unwrap(), "ever");
    });
}

#[test]
fn a_snapshot_keeps_what_a_sweep_deletes() {
    on_both(|store| {
        put(store, A, "k", until(5, "old"));
        let snapshot = store.snapshot().unwrap();
        let mut scan = store.scan(A, &KeyRange::all(), Direction::Ascending).unwrap();
        assert_eq!(sweep(store, A, 10, SMALL), (1, 1));
        assert_eq!(store.get(A, b"k").unwrap(), None);
        assert_eq!(records(&*snapshot, A)[&b"k"[..]], until(5, "old"));
        assert_eq!(scan.next().unwrap().unwrap().1, until(5, "old"));
    });
}

/// Between the decision and the deletion records are written again.
#[test]
fn a_record_that_is_written_again_stays() {
    let directory = tempfile::tempdir().unwrap();
    let stores: [Arc<dyn KeyValueStore>; 2] =
        [Arc::new(MemoryStore::new()), Arc::new(engine(directory.path()))];
    for store in stores {
        for key in ["again", "deleted", "same"] {
            put(&*store, A, key, until(5, "old"));
        }
        let writer = Arc::clone(&store);
        let rewriting = move |key: &[u8], value: &[u8], now: i64| {
            if key == b"deleted" {
                put(&*writer, A, "again", until(20, "new"));
                let mut batch = WriteBatch::new();
                batch.delete(A, "deleted");
                commit(&*writer, &batch);
            }
            is_expired(key, value, now)
        };
        let all = SweepBudget { records: 100, bytes: 1 << 20 };
        assert_eq!(store.sweep(A, &rewriting, 10, None, all).unwrap().expired, 3);
        assert_eq!(keys(&*store, A), ["again"]);
        assert_eq!(store.get(A, b"again").unwrap().unwrap(), until(20, "new"));
    }
}

#[test]
fn a_conditional_deletion_acts_in_the_order_of_its_batch() {
    on_both(|store| {
        put(store, A, "k1", b"1".to_vec());
        put(store, A, "k2", b"1".to_vec());
        put(store, A, "k3", b"1".to_vec());
        let mut batch = WriteBatch::new();
        batch.put(A, "k1", "2").delete_if(A, "k1", "1");
        batch.delete_if(A, "k2", "1").put(A, "k2", "3").delete_if(A, "k2", "1");
        batch.put(A, "k4", "4").delete_if(A, "k4", "4").delete_if(A, "k3", "2").delete_if(B, "k1", "1");
        store.commit(&batch).unwrap();
        let found: Vec<_> = records(&*store.snapshot().unwrap(), A).into_values().collect();
        assert_eq!(found, [b"2", b"3", b"1"]);
    });
}

/// The engine sweeps by itself. The reference does not.
#[test]
fn the_engine_deletes_what_has_expired_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let store = engine(directory.path());
    for number in 0..9_000 {
        let space = if number % 2 == 0 { A } else { B };
        let time = if number % 3 == 0 { i64::MAX } else { 7 };
        put(&store, space, &format!("{number:05}"), until(time, ""));
    }
    store.expire(A, Arc::new(is_expired)).unwrap();
    store.expire(B, Arc::new(is_expired)).unwrap();
    let began = Instant::now();
    while keys(&store, A).len() + keys(&store, B).len() > 3_000 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} are left", keys(&store, A).len());
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = [keys(&store, A), keys(&store, B)].concat();
    assert!(left.iter().all(|key| key.parse::<u32>().unwrap() % 3 == 0), "only what has expired is deleted");
    assert_eq!(left.len(), 3_000);
    store.close().unwrap();
    assert!(store.expire(A, Arc::new(is_expired)).is_err());
}

#[derive(Debug, Clone)]
enum Step {
    Put {
        key: u8,
        time: i64,
        bytes: usize,
    },
    Delete(u8),
    Sweep {
        records: u64,
    },
    Time(i64),
    Snapshot,
    EndSnapshot,
    Reopen,
    /// What a crash leaves: the files as they are, with the journal.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0_u8..30, 0_i64..60, 0_usize..400).prop_map(|(key, time, bytes)| Step::Put { key, time, bytes }),
        3 => (0_u8..30).prop_map(Step::Delete),
        4 => (1_u64..20).prop_map(|records| Step::Sweep { records }),
        2 => (1_i64..8).prop_map(Step::Time),
        2 => Just(Step::Snapshot),
        1 => Just(Step::EndSnapshot),
        1 => Just(Step::Reopen),
        1 => Just(Step::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn the_engine_reclaims_what_the_reference_does(steps in proptest::collection::vec(step(), 20..120)) {
        let parent = tempfile::tempdir().unwrap();
        let (mut directory, mut generation) = (parent.path().join("0"), 0);
        let mut store = engine(&directory);
        let reference = MemoryStore::new();
        // All records that were put, without those that were deleted by their owner.
        let mut model = Records::new();
        let mut snapshots: Vec<(Box<dyn Snapshot>, Records)> = Vec::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Put { key, time, bytes } => {
                    let value = until(time, &"x".repeat(bytes));
                    put(&store, A, &format!("{key:02}"), value.clone());
                    put(&reference, A, &format!("{key:02}"), value.clone());
                    model.insert(format!("{key:02}").into_bytes(), value);
                }
                Step::Delete(key) => {
                    let mut batch = WriteBatch::new();
                    batch.delete(A, format!("{key:02}"));
                    commit(&store, &batch);
                    commit(&reference, &batch);
                    model.remove(format!("{key:02}").as_bytes());
                }
                Step::Sweep { records } => {
                    let budget = SweepBudget { records, bytes: 1 << 20 };
                    prop_assert_eq!(sweep(&store, A, now, budget), sweep(&reference, A, now, budget));
                }
                Step::Time(more) => now += more,
                Step::Snapshot => {
                    let snapshot = store.snapshot().unwrap();
                    let content = records(&*snapshot, A);
                    snapshots.push((snapshot, content));
                }
                Step::EndSnapshot => drop(snapshots.pop()),
                Step::Reopen => {
                    snapshots.clear();
                    store.close().unwrap();
                    drop(store);
                    store = engine(&directory);
                }
                Step::Crash => {
                    generation += 1;
                    directory = parent.path().join(generation.to_string());
                    store.checkpoint().unwrap().unwrap().copy_to(&directory).unwrap();
                    snapshots.clear();
                    store = engine(&directory);
                }
            }
            let found = records(&*store.snapshot().unwrap(), A);
            prop_assert_eq!(&found, &records(&*reference.snapshot().unwrap(), A));
            // What is missing has expired, and what is there was not changed.
            for (key, value) in &model {
                let is_right = found.get(key).map_or(is_expired(key, value, now), |there| there == value);
                prop_assert!(is_right, "{:?} at {}", key, now);
            }
            prop_assert!(found.keys().all(|key| model.contains_key(key)));
            for (snapshot, content) in &snapshots {
                prop_assert_eq!(&records(&**snapshot, A), content);
            }
        }
    }
}

/// The bound says that a function of the types is an [`Expiry`].
const _: fn() = || {
    fn is_one(_: impl Expiry) {}
    is_one(is_expired);
};
