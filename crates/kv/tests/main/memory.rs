//! The bound over the memory of all spaces.

use std::process::Command;

use kv::{EngineOptions, EngineStore, KeyRange, KeyValueStore, KvError, Space, WriteBatch, limits};

const TEST: &str = "memory::all_spaces_together_have_a_bound_of_memory";
const CHILD: &str = "TACHO_TEST_KV_MEMORY";
const VALUE_BYTES: usize = 3_000;
const ROUNDS: u32 = 100;

/// The names of spaces count for a whole process, so the test has one of its own.
#[test]
fn all_spaces_together_have_a_bound_of_memory() {
    if std::env::var(CHILD).is_ok() {
        return fill_all_spaces();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let status = child.args([TEST, "--exact", "--nocapture"]).env(CHILD, "1").status().unwrap();
    assert!(status.success(), "{status}");
}

fn fill_all_spaces() {
    let directory = tempfile::tempdir().unwrap();
    let spaces: Vec<Space> = (0..limits::SPACES_MAX as u8)
        .map(|number| {
            Space::named(&format!("space_{}{}", (b'a' + number / 8) as char, (b'a' + number % 8) as char))
                .unwrap()
        })
        .collect();
    // The spaces were made by an engine with more memory. They take part in the bound of the present options.
    let large = EngineStore::open(directory.path(), &EngineOptions::default()).unwrap();
    for space in &spaces {
        put(&large, *space, 0);
    }
    large.close().unwrap();
    drop(large);
    let options = EngineOptions::within(4 << 20);
    assert_eq!(options.memory_bytes_max(), 4 << 20);
    // No space alone is written to a file: what bounds the memory is the sum.
    let options = EngineOptions { memtable_bytes: 1 << 20, ..options };
    let store = EngineStore::open(directory.path(), &options).unwrap();
    let (mut most, mut waits) = (0, 0);
    for round in 1..=ROUNDS {
        for space in &spaces {
            waits += put(&store, *space, round);
            most = most.max(store.status().memory_bytes);
        }
    }
    let written = spaces.len() as u64 * u64::from(ROUNDS) * VALUE_BYTES as u64;
    let batch = VALUE_BYTES as u64 + 1_000;
    assert!(
        most <= options.memory_bytes_max() + batch,
        "{most} bytes of {written} were in memory, {waits} waits"
    );
    assert!(written > 4 * options.memory_bytes_max(), "more is written than memory may have");
    for space in &spaces {
        let found = store.scan(*space, &KeyRange::all(), kv::Direction::Ascending).unwrap();
        assert_eq!(found.map(Result::unwrap).count() as u32, ROUNDS + 1, "{space}");
    }
    store.close().unwrap();
}

/// Writes one record. Returns how often the store was busy.
fn put(store: &EngineStore, space: Space, round: u32) -> u32 {
    let mut batch = WriteBatch::new();
    batch.put(space, round.to_be_bytes().to_vec(), vec![round as u8; VALUE_BYTES]);
    let mut waits = 0;
    while let Err(error) = store.commit(&batch) {
        assert!(matches!(error, KvError::Busy { .. }), "{error}");
        waits += 1;
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    waits
}
