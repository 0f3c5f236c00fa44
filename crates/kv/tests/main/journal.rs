//! Damage to the end of the journal, as a crash or a power cut leaves it.

use std::fs;
use std::path::{Path, PathBuf};

use kv::{EngineOptions, EngineStore, KeyValueStore, KvError, Space, WriteBatch};

const SPACE: Space = Space::new("sessions");
/// Below the size from which the engine compresses a value in its journal.
const VALUE_BYTES: usize = 4_000;

/// A closed store whose last batch has a value of one repeated byte.
fn closed() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    for (key, byte) in [("first", 1), ("last", 2)] {
        let mut batch = WriteBatch::new();
        batch.put(SPACE, key, vec![byte; VALUE_BYTES]);
        store.commit(&batch).unwrap();
    }
    store.close().unwrap();
    directory
}

fn open(directory: &Path) -> Result<EngineStore, KvError> {
    EngineStore::open(directory, &EngineOptions::default())
}

fn has(store: &EngineStore, key: &str) -> bool {
    store.get(SPACE, key.as_bytes()).unwrap().is_some()
}

/// Changes the bytes of the journal. The second argument of `change` is the place where the value of the last batch begins.
fn damage(directory: &Path, change: impl FnOnce(&mut Vec<u8>, usize)) {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let journals: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "jnl")).collect();
    let [journal] = journals.as_slice() else { panic!("one journal, not {journals:?}") };
    let mut bytes = fs::read(journal).unwrap();
    let begin = bytes.windows(100).position(|window| window == [2; 100]).unwrap();
    change(&mut bytes, begin);
    fs::write(journal, bytes).unwrap();
}

#[test]
fn a_torn_last_batch_is_left_out_and_the_store_continues() {
    for kept in [0, 1, VALUE_BYTES / 2, VALUE_BYTES] {
        let directory = closed();
        damage(directory.path(), |bytes, begin| bytes.truncate(begin + kept));
        let store = open(directory.path()).unwrap();
        assert!(has(&store, "first") && !has(&store, "last"), "{kept} bytes of the value kept");
        let mut batch = WriteBatch::new();
        batch.put(SPACE, "later", "value");
        store.commit(&batch).unwrap();
        store.close().unwrap();
        drop(store);
        let store = open(directory.path()).unwrap();
        assert!(has(&store, "first") && has(&store, "later"), "{kept} bytes of the value kept");
    }
}

#[test]
fn bytes_that_are_no_record_end_the_journal() {
    let directory = closed();
    damage(directory.path(), |bytes, begin| {
        let after = begin + VALUE_BYTES + 100;
        bytes.resize(bytes.len().max(after + 5000), 0);
        bytes[after..].fill(0xa5);
    });
    let store = open(directory.path()).unwrap();
    assert!(has(&store, "first") && has(&store, "last"));
}

/// The engine tells a changed value from a torn batch. It does not drop the batch by itself: it may have been acknowledged.
#[test]
fn a_changed_byte_within_a_batch_is_told_and_not_read() {
    let directory = closed();
    damage(directory.path(), |bytes, begin| bytes[begin + VALUE_BYTES / 2] ^= 1);
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, KvError::Corrupt { .. }), "{error}");
}
