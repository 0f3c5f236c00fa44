//! A workload that knows what the store must have afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use kv::{
    Direction, EngineOptions, EngineStore, KeyRange, KeyValueStore, KvError, Progress, ProgressWatcher,
    Sequence, Space, WriteBatch,
};

const SPACES: [Space; 3] = [Space::new("first"), Space::new("second"), Space::new("third")];

/// The key of the number of the last batch.
const LAST: &[u8] = b"last";

/// More than the largest value.
const RANDOM_BYTES: usize = 1 << 20;

/// The longest wait for the end of a fault.
const PATIENCE: Duration = Duration::from_secs(60);

/// The content of a store.
pub(super) type Content = BTreeMap<(Space, Vec<u8>), Vec<u8>>;

/// The shape of a workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) batches: u64,
    pub(super) value_bytes: usize,
    pub(super) memtable_bytes: u64,
}

/// What happened.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The content after each batch that was committed is found again from its operations.
    committed: Vec<WriteBatch>,
    pub(super) refused: u64,
    pub(super) durable: Sequence,
    pub(super) sealed: Option<String>,
}

/// Wakes a thread when the store has made progress or has room.
struct Wake(Thread);

impl ProgressWatcher for Wake {
    fn progress(&self, _: Progress) {
        self.0.unpark();
    }
}

pub(super) fn open(directory: &Path, shape: &Shape) -> Result<EngineStore, KvError> {
    let options = EngineOptions { memtable_bytes: shape.memtable_bytes, ..EngineOptions::default() };
    EngineStore::open(directory, &options)
}

/// Commits all batches; a batch that was refused is tried again, with another key that tells the attempts apart.
pub(super) fn write(store: &EngineStore, shape: &Shape, mut before: impl FnMut(u64)) -> Outcome {
    store.watch(Arc::new(Wake(std::thread::current())));
    let mut outcome = Outcome { committed: Vec::new(), refused: 0, durable: 0, sealed: None };
    let mut random = numbers(shape.batches);
    for number in 0..shape.batches {
        before(number);
        let began = Instant::now();
        loop {
            let batch = batch(number, outcome.refused, shape, &mut random);
            match store.commit(&batch) {
                Ok(sequence) => {
                    outcome.committed.push(batch);
                    assert_eq!(sequence, outcome.committed.len() as u64);
                    break;
                }
                Err(KvError::Busy { reason }) => {
                    outcome.refused += 1;
                    assert!(began.elapsed() < PATIENCE, "busy for too long: {reason}");
                    // The store calls the watchers when it has room.
                    std::thread::park_timeout(Duration::from_secs(5));
                }
                Err(error) => {
                    outcome.sealed = Some(error.to_string());
                    outcome.durable = store.progress().durable;
                    return outcome;
                }
            }
        }
    }
    let began = Instant::now();
    while store.progress().durable < shape.batches {
        if let Some(cause) = store.status().sealed {
            outcome.sealed = Some(cause);
            break;
        }
        assert!(began.elapsed() < PATIENCE, "not durable: {:?}", store.status());
        std::thread::park_timeout(Duration::from_millis(50));
    }
    outcome.durable = store.progress().durable;
    outcome
}

fn batch(number: u64, attempt: u64, shape: &Shape, random: &mut impl FnMut() -> u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for space in SPACES {
        batch.put(space, format!("key {:03}", random() % 200), value(shape.value_bytes, random()));
    }
    if number % 7 == 3 {
        let from = random() % 190;
        batch.delete_range(
            SPACES[(random() % 3) as usize],
            KeyRange::new(format!("key {from:03}"), format!("key {:03}", from + 10)),
        );
    }
    batch.put(SPACES[0], format!("attempt {number}.{attempt}"), "");
    batch.put(SPACES[1], LAST, (number + 1).to_be_bytes().to_vec());
    batch
}

/// A value that cannot be compressed: a part of the same random bytes, with a number of its own.
pub(super) fn value(bytes: usize, number: u64) -> Vec<u8> {
    static RANDOM: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut random = numbers(1);
        (0..RANDOM_BYTES / 8).flat_map(|_| random().to_le_bytes()).collect()
    });
    let begin = number as usize % (RANDOM_BYTES - bytes);
    let mut value = RANDOM[begin..begin + bytes].to_vec();
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

/// The numbers of xorshift.
fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

impl Outcome {
    /// The content after some of the batches.
    fn content_after(&self, batches: usize) -> Content {
        let mut content = Content::new();
        for (space, operation) in self.committed[..batches].iter().flat_map(WriteBatch::operations) {
            match operation {
                kv::Operation::Put(key, value) => {
                    content.insert((*space, key.to_vec()), value.to_vec());
                }
                kv::Operation::DeleteIf(key, value) => {
                    let place = (*space, key.to_vec());
                    if content.get(&place).is_some_and(|found| found == value) {
                        content.remove(&place);
                    }
                }
                kv::Operation::Delete(key) => drop(content.remove(&(*space, key.to_vec()))),
                kv::Operation::DeleteRange(range) => {
                    content.retain(|(of, key), _| of != space || !range.contains(key));
                }
            }
        }
        content
    }

    /// Checks that a store has all batches, or after a failure all that were durable and none that was refused.
    pub(super) fn check(&self, store: &EngineStore, when: &str) {
        let content = content_of(store);
        let last = content.get(&(SPACES[1], LAST.to_vec()));
        let last = last.map_or(0, |bytes| u64::from_be_bytes(bytes[..].try_into().unwrap()));
        let all = self.committed.len() as u64;
        assert!(last >= self.durable, "{when}: {} batches were durable, {last} are there", self.durable);
        assert!(last <= all, "{when}: {all} batches were committed, {last} are there");
        assert!(
            self.sealed.is_some() || last == all,
            "{when}: {all} batches were committed, {last} are there"
        );
        let expected = self.content_after(last as usize);
        assert!(content == expected, "{when}: {}", difference(&content, &expected));
    }
}

fn difference(content: &Content, expected: &Content) -> String {
    let name = |(space, key): &(Space, Vec<u8>)| format!("{space}/{}", String::from_utf8_lossy(key));
    let extra: Vec<_> = content.keys().filter(|key| !expected.contains_key(key)).map(name).collect();
    let missing: Vec<_> = expected.keys().filter(|key| !content.contains_key(key)).map(name).collect();
    format!("too many: {extra:?}; missing: {missing:?}; or values differ")
}

/// All records. A fault in the background can end the read, which then begins again.
fn content_of(store: &EngineStore) -> Content {
    let began = Instant::now();
    loop {
        match read(store) {
            Ok(content) => return content,
            Err(KvError::Busy { .. }) if began.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("cannot read all records: {error}"),
        }
    }
}

fn read(store: &EngineStore) -> Result<Content, KvError> {
    let snapshot = store.snapshot()?;
    let mut content = Content::new();
    for space in snapshot.spaces() {
        for record in snapshot.scan(space, &KeyRange::all(), Direction::Ascending)? {
            let (key, value) = record?;
            content.insert((space, key.to_vec()), value.to_vec());
        }
    }
    Ok(content)
}
