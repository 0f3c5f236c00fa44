//! Checkpoints: a copy has the content of one point in time, whatever the store does meanwhile.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kv::{
    Checkpoint, EngineOptions, EngineStore, KeyRange, KeyValueStore, KvError, MemoryStore, Space, WriteBatch,
    dump,
};

const SPACES: [Space; 3] = [Space::new("first"), Space::new("second"), Space::new("third")];
/// The space that has the number of batches.
const COUNT: Space = Space::new("count");
const DIRECTORY: &str = "TACHO_TEST_KV_DIRECTORY";
const KILLED: &str = "checkpoint::a_kill_during_a_checkpoint_leaves_no_harm";

/// Memtables that are full after some batches: tables are written and merged all the time.
fn open(directory: &Path) -> EngineStore {
    let options = EngineOptions { memtable_bytes: 24 << 10, ..EngineOptions::default() };
    EngineStore::open(directory, &options).unwrap()
}

/// The batch of a number. It overwrites, deletes, and writes to several spaces.
fn batch(number: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (place, space) in (0..).zip(SPACES) {
        let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(place * 9);
        let key = format!("key {:03}", random % 300);
        batch.put(
            space,
            key,
            [vec![random as u8; (random % 900) as usize], number.to_be_bytes().to_vec()].concat(),
        );
        if random % 11 == 3 {
            batch.delete_range(
                space,
                KeyRange::new(format!("key {:03}", random % 290), format!("key {:03}", random % 290 + 5)),
            );
        }
    }
    // A space comes later than the others.
    if number > 100 {
        batch.put(Space::new("late"), number.to_be_bytes().to_vec(), "");
        batch.delete(Space::new("late"), (number - 20).to_be_bytes().to_vec());
    }
    batch.put(COUNT, "count", (number + 1).to_be_bytes().to_vec());
    batch
}

fn commit(store: &dyn KeyValueStore, batch: &WriteBatch) -> u64 {
    loop {
        match store.commit(batch) {
            Ok(sequence) => return sequence,
            Err(KvError::Busy { .. }) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{error}"),
        }
    }
}

fn count(store: &dyn KeyValueStore) -> u64 {
    let value = store.get(COUNT, b"count").unwrap();
    value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()))
}

fn dumped(store: &dyn KeyValueStore) -> Vec<u8> {
    let mut bytes = Vec::new();
    dump::export(&*store.snapshot().unwrap(), &mut bytes).unwrap();
    bytes
}

/// The reference after some batches.
struct Reference(MemoryStore, u64);

impl Reference {
    /// Checks that a store has exactly the content after some number of batches, and returns the number.
    fn check(&mut self, store: &dyn KeyValueStore) -> u64 {
        let count = count(store);
        assert!(count >= self.1, "the checks are in the order of the checkpoints");
        for number in self.1..count {
            self.0.commit(&batch(number)).unwrap();
        }
        self.1 = count;
        assert!(dumped(store) == dumped(&self.0), "the content after {count} batches");
        count
    }
}

/// Copies a checkpoint, as a backup does, and opens the copy.
fn restored(checkpoint: &Arc<Checkpoint>, directory: &Path) -> EngineStore {
    for (place, file) in checkpoint.files().iter().enumerate() {
        let path = directory.join(file.name());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut content = Vec::new();
        checkpoint.reader(place).read_to_end(&mut content).unwrap();
        assert_eq!(content.len() as u64, file.bytes(), "{}", file.name());
        std::fs::write(path, content).unwrap();
    }
    open(directory)
}

/// Ends a writer, also when a check fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_checkpoint_during_heavy_writes_is_one_point_in_time() {
    let parent = tempfile::tempdir().unwrap();
    let mut store = open(&parent.path().join("store"));
    let mut reference = Reference(MemoryStore::new(), 0);
    let mut counts = Vec::new();
    for round in 0..2 {
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let first = count(&store);
                for number in first.. {
                    commit(&store, &batch(number));
                    if end.load(Ordering::Relaxed) && number >= first + 500 {
                        return;
                    }
                }
            });
            let ends = EndOnDrop(&end);
            for number in 0..4 {
                let before = count(&store);
                let checkpoint = Arc::new(store.checkpoint().unwrap().unwrap());
                let after = count(&store);
                // The store goes on and merges the tables that the checkpoint has.
                while count(&store) < after + 60 {
                    std::thread::yield_now();
                }
                let directory = parent.path().join(format!("copy {round} {number}"));
                let copy = match number % 2 {
                    0 => restored(&checkpoint, &directory),
                    _ => {
                        checkpoint.copy_to(&directory).unwrap();
                        open(&directory)
                    }
                };
                drop(checkpoint);
                let found = reference.check(&copy);
                assert!((before..=after).contains(&found), "{before} to {after}, not {found}");
                counts.push(found);
                // A copy is a store of its own.
                commit(&copy, &batch(found));
                copy.close().unwrap();
                drop(copy);
                assert_eq!(count(&open(&directory)), found + 1);
            }
            drop(ends);
            writer.join().unwrap();
        });
        store.close().unwrap();
        drop(store);
        // The next round has journals and tables of an earlier opening.
        store = open(&parent.path().join("store"));
    }
    reference.check(&store);
    assert!(counts[0] < counts[7], "batches came between the checkpoints");
}

/// The journal begins another file after 64 million bytes, and files go when their batches are in tables.
#[test]
fn a_checkpoint_while_the_journal_changes_its_files_has_all_batches() {
    const BYTES: usize = 300 << 10;
    let parent = tempfile::tempdir().unwrap();
    let options = EngineOptions { memtable_bytes: 1 << 20, ..EngineOptions::default() };
    let open = |name: String| EngineStore::open(&parent.path().join(name), &options).unwrap();
    let store = open("store".to_owned());
    let end = AtomicBool::new(false);
    let journals = |checkpoint: &Checkpoint| {
        let names = checkpoint.files().iter().map(|file| file.name().to_owned());
        names.filter(|name| name.ends_with(".jnl")).collect::<std::collections::BTreeSet<_>>()
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0_u64.. {
                let mut batch = WriteBatch::new();
                for space in SPACES {
                    batch.put(space, vec![number as u8 % 16], value(number, BYTES));
                }
                batch.put(COUNT, "count", (number + 1).to_be_bytes().to_vec());
                commit(&store, &batch);
                if end.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let ends = EndOnDrop(&end);
        let mut known = journals(&store.checkpoint().unwrap().unwrap());
        let (mut changes, mut number) = (0, 0);
        while changes < 3 {
            let before = count(&store);
            let checkpoint = store.checkpoint().unwrap().unwrap();
            let found = journals(&checkpoint);
            number += 1;
            // Also some of those between the changes.
            if found == known && number % 40 > 0 {
                continue;
            }
            changes += u32::from(found != known);
            known = found;
            let name = format!("copy {number}");
            checkpoint.copy_to(&parent.path().join(&name)).unwrap();
            drop(checkpoint);
            let copy = open(name.clone());
            let batches = count(&copy);
            assert!(batches >= before, "{before} batches were there before, {batches} are in the checkpoint");
            for (space, back) in
                SPACES.iter().flat_map(|space| (1..=batches.min(16)).map(move |back| (*space, back)))
            {
                let number = batches - back;
                let found = copy.get(space, &[number as u8 % 16]).unwrap();
                assert!(
                    found.is_some_and(|found| found == value(number, BYTES)),
                    "{space} of batch {number}"
                );
            }
            drop(copy);
            std::fs::remove_dir_all(parent.path().join(name)).unwrap();
        }
        drop(ends);
        writer.join().unwrap();
    });
}

/// Bytes that cannot be compressed well, and that tell the number.
fn value(number: u64, bytes: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..bytes / 8).flat_map(|_| next()).collect()
}

#[test]
fn a_store_has_one_checkpoint_at_a_time_and_goes_on_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let empty = store.checkpoint().unwrap().unwrap();
    assert!(matches!(store.checkpoint(), Err(KvError::Busy { .. })));
    assert!(links(directory.path()).is_dir());
    commit(&store, &batch(0));
    let copies = tempfile::tempdir().unwrap();
    empty.copy_to(&copies.path().join("empty")).unwrap();
    drop(empty);
    assert!(!links(directory.path()).exists());
    let one = store.checkpoint().unwrap().unwrap();
    one.copy_to(&copies.path().join("one")).unwrap();
    assert!(one.copy_to(&copies.path().join("one")).is_err(), "a copy never writes over files");
    drop(one);
    assert_eq!(count(&open(&copies.path().join("empty"))), 0);
    assert_eq!(count(&open(&copies.path().join("one"))), 1);
    store.close().unwrap();
    assert!(matches!(store.checkpoint(), Err(KvError::Closed)));
    assert!(MemoryStore::new().checkpoint().unwrap().is_none());
}

/// Tables that are in both checkpoints have the same name and bytes, so a backup need not copy them twice.
#[test]
fn tables_keep_their_names_and_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    (0..400).for_each(|number| assert!(commit(&store, &batch(number)) > 0));
    let tables = |checkpoint: Checkpoint| {
        let checkpoint = Arc::new(checkpoint);
        let files = checkpoint.files().iter().enumerate().filter(|(_, file)| file.is_immutable());
        files
            .map(|(place, file)| {
                let mut content = Vec::new();
                checkpoint.reader(place).read_to_end(&mut content).unwrap();
                (file.name().to_owned(), content)
            })
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let first = tables(store.checkpoint().unwrap().unwrap());
    (400..420).for_each(|number| assert!(commit(&store, &batch(number)) > 0));
    let second = tables(store.checkpoint().unwrap().unwrap());
    let shared: Vec<_> = first.keys().filter(|name| second.contains_key(*name)).collect();
    assert!(!shared.is_empty(), "{:?} and {:?}", first.keys(), second.keys());
    assert!(shared.iter().all(|name| first[*name] == second[*name]));
}

fn links(directory: &Path) -> PathBuf {
    directory.join("checkpoint")
}

/// The child: commits batches forever, and makes checkpoints and copies of them meanwhile. Prints what is durable, and what a copy has.
fn work_until_killed(parent: &Path) -> ! {
    let store = open(&parent.join("store"));
    let first = count(&store);
    let say = |line: String| writeln!(io::stdout().lock(), "{line}").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                let copy = parent.join(format!("copy {first} {number}"));
                store.checkpoint().unwrap().unwrap().copy_to(&copy).unwrap();
                say(format!("copied {}", copy.display()));
            }
        });
        for number in first.. {
            let sequence = commit(&store, &batch(number));
            while store.progress().durable < sequence {
                std::thread::yield_now();
            }
            say(format!("durable {}", number + 1));
        }
    });
    unreachable!("the numbers do not end before the process")
}

#[test]
fn a_kill_during_a_checkpoint_leaves_no_harm() {
    if let Ok(directory) = std::env::var(DIRECTORY) {
        work_until_killed(Path::new(&directory));
    }
    let parent = tempfile::tempdir().unwrap();
    let mut reference = Reference(MemoryStore::new(), 0);
    let mut copies = 0;
    for round in 0..4_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([KILLED, "--exact", "--nocapture"])
            .env(DIRECTORY, parent.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (mut durable, mut copied) = (0, Vec::new());
        let mut take = |line: String| {
            if let Some(number) = line.strip_prefix("durable ") {
                durable = number.parse().unwrap();
            } else if let Some(path) = line.strip_prefix("copied ") {
                copied.push(PathBuf::from(path));
            }
        };
        for _ in 0..80 + 53 * round {
            take(lines.next().expect("the child goes on until it is killed"));
        }
        std::thread::sleep(Duration::from_micros(1_300 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(take);
        for copy in copied {
            reference.check(&open(&copy));
            copies += 1;
        }
        let store = open(&parent.path().join("store"));
        let found = reference.check(&store);
        assert!(found >= durable, "{durable} batches were durable, {found} are there");
        assert!(!links(&parent.path().join("store")).exists(), "the next opening removes the links");
        // The next checkpoint works.
        drop(store.checkpoint().unwrap());
    }
    assert!(copies > 0, "{copies} copies were made");
}
