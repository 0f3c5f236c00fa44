//! The contract, for the reference and the engine, and against a naive model.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use kv::{
    Direction, EngineOptions, EngineStore, KeyRange, KeyValueStore, KvError, MemoryStore, Space, WriteBatch,
    dump,
};
use proptest::prelude::*;

const A: Space = Space::new("a");
const B: Space = Space::new("b");

fn engine(directory: &Path) -> EngineStore {
    EngineStore::open(directory, &EngineOptions::default()).unwrap()
}

/// Runs a test of the contract on both stores.
fn on_both(test: impl Fn(&dyn KeyValueStore)) {
    test(&MemoryStore::new());
    let directory = tempfile::tempdir().unwrap();
    test(&engine(directory.path()));
}

fn all(
    store: &dyn KeyValueStore,
    space: Space,
    range: &KeyRange,
    direction: Direction,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let found = store.scan(space, range, direction).unwrap();
    found.map(|record| record.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

fn keys(store: &dyn KeyValueStore, space: Space, range: &KeyRange) -> Vec<Vec<u8>> {
    all(store, space, range, Direction::Ascending).into_iter().map(|(key, _)| key).collect()
}

fn wait_until_durable(store: &dyn KeyValueStore, sequence: u64) {
    struct Unpark(std::thread::Thread);
    impl kv::ProgressWatcher for Unpark {
        fn progress(&self, _: kv::Progress) {
            self.0.unpark();
        }
    }
    store.watch(Arc::new(Unpark(std::thread::current())));
    while store.progress().durable < sequence {
        std::thread::park();
    }
}

#[test]
fn scans_follow_the_bytes_of_keys_in_both_directions() {
    on_both(|store| {
        let mut batch = WriteBatch::new();
        for key in ["b", "a", "ab", "\u{7f}"] {
            batch.put(A, key, key.to_uppercase());
        }
        batch.put(A, vec![0xff, 0xff], "last").put(B, "a", "other space");
        store.commit(&batch).unwrap();
        let ascending = all(store, A, &KeyRange::all(), Direction::Ascending);
        let expected: [&[u8]; 5] = [b"a", b"ab", b"b", b"\x7f", &[0xff, 0xff]];
        assert_eq!(ascending.iter().map(|(key, _)| &key[..]).collect::<Vec<_>>(), expected);
        let mut descending = all(store, A, &KeyRange::all(), Direction::Descending);
        descending.reverse();
        assert_eq!(descending, ascending);
        assert_eq!(keys(store, A, &KeyRange::prefix("a")), [b"a".to_vec(), b"ab".to_vec()]);
        assert_eq!(keys(store, A, &KeyRange::new("ab", "b")), [b"ab".to_vec()]);
        assert!(keys(store, A, &KeyRange::new("b", "a")).is_empty());
        assert!(keys(store, Space::new("never"), &KeyRange::all()).is_empty());
        assert_eq!(store.get(B, b"a").unwrap().unwrap(), "other space");
    });
}

#[test]
fn a_batch_acts_in_its_order_and_as_a_whole() {
    on_both(|store| {
        let mut batch = WriteBatch::new();
        batch.put(A, "k1", "1").put(A, "k2", "2").delete_range(A, KeyRange::prefix("k")).put(A, "k3", "3");
        batch.put(A, "x", "1").put(A, "x", "2").delete(A, "y").put(B, "k1", "kept");
        store.commit(&batch).unwrap();
        assert_eq!(keys(store, A, &KeyRange::all()), [b"k3".to_vec(), b"x".to_vec()]);
        assert_eq!(store.get(A, b"x").unwrap().unwrap(), "2");
        assert_eq!(store.get(B, b"k1").unwrap().unwrap(), "kept");
        let mut refused = WriteBatch::new();
        refused.put(A, "z", "1").put(A, vec![0; kv::limits::KEY_BYTES_MAX + 1], "");
        assert!(matches!(store.commit(&refused), Err(KvError::OverLimit { .. })));
        assert_eq!(store.get(A, b"z").unwrap(), None);
    });
}

#[test]
fn a_scan_does_not_see_later_batches() {
    on_both(|store| {
        let mut batch = WriteBatch::new();
        for n in 0..1_000_u32 {
            batch.put(A, n.to_be_bytes().to_vec(), "old");
        }
        store.commit(&batch).unwrap();
        let scan = store.scan(A, &KeyRange::all(), Direction::Ascending).unwrap();
        let mut batch = WriteBatch::new();
        batch.delete_range(A, KeyRange::all()).put(A, "new", "new");
        store.commit(&batch).unwrap();
        assert!(scan.map(Result::unwrap).all(|(_, value)| value == "old"));
        assert_eq!(keys(store, A, &KeyRange::all()), [b"new".to_vec()]);
    });
}

#[test]
fn sequences_become_durable_and_watchers_hear_of_it() {
    on_both(|store| {
        let mut batch = WriteBatch::new();
        batch.put(A, "k", "v");
        let first = store.commit(&batch).unwrap();
        let second = store.commit(&batch).unwrap();
        assert_eq!(second, first + 1);
        wait_until_durable(store, second);
        store.close().unwrap();
        assert!(matches!(store.commit(&batch), Err(KvError::Closed)));
        assert!(matches!(store.get(A, b"k"), Err(KvError::Closed)));
    });
}

#[test]
fn a_dump_moves_all_records_to_another_store() {
    on_both(|store| {
        let mut batch = WriteBatch::new();
        batch.put(A, "k", "v").put(B, vec![0, 255], vec![7; 100_000]);
        store.commit(&batch).unwrap();
        let mut bytes = Vec::new();
        assert_eq!(dump::export(&*store.snapshot().unwrap(), &mut bytes).unwrap(), 2);
        let directory = tempfile::tempdir().unwrap();
        let copy = engine(directory.path());
        assert_eq!(dump::import(&copy, &mut bytes.as_slice()).unwrap(), 2);
        assert_eq!(copy.get(B, &[0, 255]).unwrap().unwrap().len(), 100_000);
    });
}

#[test]
fn a_check_counts_the_records_of_each_space() {
    on_both(|store| {
        let mut batch = WriteBatch::new();
        batch.put(A, "k", "v").put(A, "l", "v").put(B, "k", "v");
        store.commit(&batch).unwrap();
        let report = store.check(&mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((report.spaces, report.damage.len()), (vec![(A, 2), (B, 1)], 0));
    });
}

#[test]
fn one_process_has_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let _first = engine(directory.path());
    let second = EngineStore::open(directory.path(), &EngineOptions::default());
    assert!(matches!(second, Err(KvError::InUse { .. })), "{second:?}");
}

#[test]
fn a_torn_end_of_the_journal_is_not_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let store = engine(directory.path());
    let mut batch = WriteBatch::new();
    batch.put(A, "durable", "yes");
    let sequence = store.commit(&batch).unwrap();
    wait_until_durable(&store, sequence);
    drop(store);
    let journal = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let journal = journal.filter(|path| path.extension().is_some_and(|name| name == "jnl")).max().unwrap();
    let bytes = std::fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut torn = bytes.clone();
    // The begin of another batch: the first bytes of the last one once more.
    let begin: Vec<u8> = bytes[..end.min(20)].to_vec();
    torn[end..end + begin.len()].copy_from_slice(&begin);
    std::fs::write(&journal, torn).unwrap();
    let store = engine(directory.path());
    assert_eq!(store.get(A, b"durable").unwrap().unwrap(), "yes");
}

/// A step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Commit(Vec<(bool, Change)>),
    Reopen,
}

#[derive(Debug, Clone)]
enum Change {
    Put(u8, u16),
    Delete(u8),
    DeleteRange(u8, u8),
}

fn change() -> impl Strategy<Value = (bool, Change)> {
    let change = prop_oneof![
        4 => (0_u8..40, any::<u16>()).prop_map(|(key, value)| Change::Put(key, value)),
        2 => (0_u8..40).prop_map(Change::Delete),
        1 => (0_u8..40, 0_u8..40).prop_map(|(from, to)| Change::DeleteRange(from, to)),
    ];
    (any::<bool>(), change)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => proptest::collection::vec(change(), 1..8).prop_map(Step::Commit),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn the_engine_has_what_a_map_has(steps in proptest::collection::vec(step(), 1..25)) {
        let directory = tempfile::tempdir().unwrap();
        let mut store = engine(directory.path());
        let mut model: BTreeMap<(Space, Vec<u8>), Vec<u8>> = BTreeMap::new();
        for step in steps {
            let Step::Commit(changes) = step else {
                store.close().unwrap();
                drop(store);
                store = engine(directory.path());
                continue;
            };
            let mut batch = WriteBatch::new();
            for (first, change) in changes {
                let space = if first { A } else { B };
                match change {
                    Change::Put(key, value) => {
                        batch.put(space, vec![key], value.to_be_bytes().to_vec());
                        model.insert((space, vec![key]), value.to_be_bytes().to_vec());
                    }
                    Change::Delete(key) => {
                        batch.delete(space, vec![key]);
                        model.remove(&(space, vec![key]));
                    }
                    Change::DeleteRange(from, to) => {
                        batch.delete_range(space, KeyRange::new(vec![from], vec![to]));
                        model.retain(|(of, key), _| *of != space || key[0] < from || key[0] >= to);
                    }
                }
            }
            store.commit(&batch).unwrap();
            for space in [A, B] {
                let expected: Vec<_> = model
                    .iter()
                    .filter(|((of, _), _)| *of == space)
                    .map(|((_, key), value)| (key.clone(), value.clone()))
                    .collect();
                prop_assert_eq!(all(&store, space, &KeyRange::all(), Direction::Ascending), expected);
            }
        }
    }
}
