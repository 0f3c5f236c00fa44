//! Faults of the system below the engine: each operation on a file fails once, is short or late.
//!
//! The usual run takes a sample of the operations; its seed is printed. `TACHO_TEST_KV_FAULTS=all` takes every operation,
//! `TACHO_TEST_KV_FAULT_KINDS=4,5` some kinds of faults by their place in [`KINDS`], `TACHO_TEST_SEED=n` repeats a sample.

mod kill;
mod layer;
mod workload;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kv::{Direction, KeyRange, KeyValueStore as _, KvError, Space, WriteBatch};
use layer::{Effect, Fault, Layer, MKDIR, OPEN, RENAME, SYNC, TRUNCATE, UNLINK, WRITE, run_under_layer};
use workload::{Outcome, Shape};

/// A kind of fault.
#[derive(Debug, Clone, Copy)]
struct Kind {
    effect: Effect,
    operations: i64,
    /// Number of operations, one after the other, that are hit.
    length: i64,
    /// Whether the store may refuse all later batches: a write of an unknown cause or a sync has failed.
    may_seal: bool,
}

const CHANGES: i64 = OPEN | WRITE | TRUNCATE | RENAME | MKDIR;

const KINDS: [Kind; 9] = [
    Kind { effect: Effect::Fail(libc::ENOSPC), operations: CHANGES, length: 1, may_seal: false },
    Kind { effect: Effect::Fail(libc::ENOSPC), operations: CHANGES, length: 5, may_seal: false },
    Kind { effect: Effect::Fail(libc::EDQUOT), operations: WRITE | MKDIR, length: 1, may_seal: false },
    Kind { effect: Effect::Fail(libc::EMFILE), operations: OPEN, length: 1, may_seal: false },
    Kind { effect: Effect::Fail(libc::ENOMEM), operations: CHANGES, length: 3, may_seal: false },
    Kind { effect: Effect::Short, operations: WRITE, length: 1, may_seal: false },
    Kind { effect: Effect::Late(20), operations: CHANGES | SYNC | UNLINK, length: 1, may_seal: false },
    Kind { effect: Effect::Fail(libc::EIO), operations: CHANGES | UNLINK, length: 1, may_seal: true },
    Kind { effect: Effect::Fail(libc::EIO), operations: SYNC, length: 1, may_seal: true },
];

/// Many small files: flushes, merges and deletions of files.
const SMALL: Shape = Shape { batches: 300, value_bytes: 500, memtable_bytes: 32 << 10 };
/// The time that the usual run takes for all kinds together.
const SMALL_TIME: Duration = Duration::from_secs(27);

/// More than a journal file, which has 64 million bytes.
const LARGE: Shape = Shape { batches: 62, value_bytes: 400 << 10, memtable_bytes: 2 << 20 };
/// Faults begin before this batch: shortly before the journal file is full.
const LARGE_BEGIN: u64 = 48;
/// More than all workloads write at once.
const FREE_BYTES: u64 = 1 << 30;
const LARGE_TIME: Duration = Duration::from_secs(12);
/// Which kinds of faults: a lack, and failures.
const LARGE_KINDS: [Kind; 3] = [KINDS[0], KINDS[7], KINDS[8]];

#[test]
fn each_operation_fails_once_and_the_store_goes_on() {
    let Some(layer) = Layer::of_this_process() else {
        return run_under_layer("faults::each_operation_fails_once_and_the_store_goes_on");
    };
    run_kinds(&layer, &SMALL, 0, &KINDS, SMALL_TIME);
}

#[test]
fn a_fault_while_the_journal_changes_its_file_passes() {
    let Some(layer) = Layer::of_this_process() else {
        return run_under_layer("faults::a_fault_while_the_journal_changes_its_file_passes");
    };
    run_kinds(&layer, &LARGE, LARGE_BEGIN, &LARGE_KINDS, LARGE_TIME);
}

fn run_kinds(layer: &Layer, shape: &Shape, begin: u64, kinds: &[Kind], time: Duration) {
    let all = std::env::var("TACHO_TEST_KV_FAULTS").is_ok_and(|mode| mode == "all");
    let seed = std::env::var("TACHO_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_secs());
    show(&format!("seed {seed}"));
    let mut random = seed;
    let wanted = std::env::var("TACHO_TEST_KV_FAULT_KINDS").ok();
    let is_wanted = |place: usize| {
        wanted.as_deref().is_none_or(|list| list.split(',').any(|one| one.parse() == Ok(place)))
    };
    for (_, kind) in kinds.iter().enumerate().filter(|(place, _)| is_wanted(*place)) {
        let counted = case(layer, shape, begin, kind, None);
        let (began, mut cases) = (Instant::now(), 0);
        for step in 1..=counted {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = if all { step } else { 1 + (random >> 33) as i64 % counted };
            if !all && began.elapsed() > time / kinds.len() as u32 {
                break;
            }
            case(layer, shape, begin, kind, Some(number));
            cases += 1;
        }
        show(&format!("{kind:?}: {cases} of {counted} operations"));
    }
}

/// Runs the workload with a fault at an operation, or none. Returns the number of operations.
fn case(layer: &Layer, shape: &Shape, begin: u64, kind: &Kind, number: Option<i64>) -> i64 {
    let directory = tempfile::tempdir_in(parent()).unwrap();
    let fault = Fault {
        effect: number.map_or(Effect::Count, |_| kind.effect),
        operations: kind.operations,
        from: number.unwrap_or(0),
        to: number.unwrap_or(0) + kind.length - 1,
    };
    let store = workload::open(directory.path(), shape).unwrap();
    let outcome = workload::write(&store, shape, |batch| {
        if batch == begin {
            layer.arm(directory.path(), "", &fault);
        }
    });
    let (counted, hit) = (layer.counted(), layer.hit_operation());
    if begin > 0 && number.is_none() {
        let files = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut journals = files.filter(|name| name.to_string_lossy().ends_with(".jnl"));
        assert!(journals.any(|name| name != "0.jnl"), "the journal has begun another file");
    }
    layer.disarm();
    let name = format!("{kind:?} at {number:?} (operation kind {hit})");
    check(&outcome, &store, kind, &name);
    drop(store);
    let store = workload::open(directory.path(), shape).unwrap_or_else(|error| panic!("{name}: {error}"));
    outcome.check(&store, &format!("{name}, opened again"));
    counted
}

/// A file system in memory, where syncs cost nothing, if there is one with room.
fn parent() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let free = rustix::fs::statvfs(memory).map_or(0, |answer| answer.f_bavail * answer.f_frsize);
    if free > FREE_BYTES { memory.to_owned() } else { std::env::temp_dir() }
}

fn check(outcome: &Outcome, store: &kv::EngineStore, kind: &Kind, name: &str) {
    match &outcome.sealed {
        Some(cause) => assert!(kind.may_seal, "{name}: sealed: {cause}"),
        None => {
            outcome.check(store, name);
            let mut batch = WriteBatch::new();
            batch.delete(Space::new("first"), "never there");
            let began = Instant::now();
            // It may be behind with its files.
            while let Err(error) = store.commit(&batch) {
                let is_busy = matches!(error, KvError::Busy { .. });
                assert!(is_busy && began.elapsed() < Duration::from_secs(20), "{name}: {error}");
                std::thread::sleep(Duration::from_millis(5));
            }
            store.close().unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

/// fjall sleeps in a commit when it is behind with its files. The layer counts the sleeps of the thread that commits.
#[test]
fn a_commit_does_not_sleep_while_files_are_slow() {
    let Some(layer) = Layer::of_this_process() else {
        return run_under_layer("faults::a_commit_does_not_sleep_while_files_are_slow");
    };
    let writer = std::thread::Builder::new().name("kv-writer".into());
    writer.spawn(move || write_while_files_are_slow(&layer)).unwrap().join().unwrap();
}

fn write_while_files_are_slow(layer: &Layer) {
    let shape = Shape { batches: 600, value_bytes: 500, memtable_bytes: 64 << 10 };
    let late = Fault { effect: Effect::Late(20), operations: WRITE | SYNC, from: 1, to: i64::MAX };
    std::thread::sleep(Duration::from_millis(1));
    assert_eq!(layer.sleeps(), 1, "the layer counts sleeps");
    let directory = tempfile::tempdir().unwrap();
    let store = workload::open(directory.path(), &shape).unwrap();
    let before = layer.sleeps();
    // Of the tables only: a commit waits for fjall's lock while it writes the list of tables.
    let outcome = workload::write(&store, &shape, |batch| {
        if batch == 10 {
            layer.arm(directory.path(), "/tables/", &late);
        }
    });
    let hit = layer.hit();
    layer.disarm();
    assert_eq!(layer.sleeps(), before, "a commit has slept");
    assert!(
        hit > 20 && outcome.refused > 5,
        "{hit} operations were late, {} batches refused",
        outcome.refused
    );
    outcome.check(&store, "slow files");
}

/// The lack is told while it lasts, reads go on, and nothing needs a restart.
#[test]
fn a_full_disk_is_busy_and_passes_by_itself() {
    let Some(layer) = Layer::of_this_process() else {
        return run_under_layer("faults::a_full_disk_is_busy_and_passes_by_itself");
    };
    let directory = tempfile::tempdir().unwrap();
    let store = workload::open(directory.path(), &SMALL).unwrap();
    let space = Space::new("first");
    let put = |key: &str| {
        let mut batch = WriteBatch::new();
        // More than the buffer of the journal has room for.
        batch.put(space, key.to_owned(), workload::value(20_000, 1));
        store.commit(&batch)
    };
    put("before").unwrap();
    while store.progress().durable < 1 {
        std::thread::yield_now();
    }
    let mut scan = store.scan(space, &KeyRange::all(), Direction::Ascending).unwrap();
    let full = Fault { effect: Effect::Fail(libc::ENOSPC), operations: CHANGES, from: 1, to: i64::MAX };
    layer.arm(directory.path(), "", &full);
    let refused = put("refused").unwrap_err();
    assert!(matches!(refused, KvError::Busy { .. }), "{refused}");
    assert!(refused.to_string().contains("No space left on device"), "{refused}");
    let status = store.status();
    assert!(status.not_ready().unwrap().contains("No space left on device"), "a lack is told at once");
    assert!(status.sealed.is_none() && status.busy.unwrap().contains("No space left on device"));
    // Reads go on as long as there is no room to open the database again.
    assert!(store.get(space, b"before").unwrap().is_some());
    std::thread::sleep(Duration::from_millis(700));
    assert!(store.get(space, b"before").unwrap().is_some());
    assert!(store.get(space, b"refused").unwrap().is_none());
    assert!(matches!(put("refused"), Err(KvError::Busy { .. })));
    layer.disarm();
    let began = Instant::now();
    while let Err(error) = put("after") {
        assert!(
            matches!(error, KvError::Busy { .. }) && began.elapsed() < Duration::from_secs(20),
            "{error}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(store.status().busy.is_none());
    // The scan of the database that was closed. A new one works.
    assert!(matches!(scan.next(), Some(Err(KvError::Busy { .. }))) && scan.next().is_none());
    let keys = store.scan(space, &KeyRange::all(), Direction::Ascending).unwrap();
    assert_eq!(keys.map(|record| record.unwrap().0).collect::<Vec<_>>(), ["after", "before"]);
    store.close().unwrap();
    drop(store);
    let store = workload::open(directory.path(), &SMALL).unwrap();
    for (key, is_there) in [("before", true), ("refused", false), ("after", true)] {
        assert_eq!(store.get(space, key.as_bytes()).unwrap().is_some(), is_there, "{key}");
    }
}

/// Each directory that a checkpoint makes fails once.
#[test]
fn a_checkpoint_that_fails_leaves_the_store_as_it_was() {
    let Some(layer) = Layer::of_this_process() else {
        return run_under_layer("faults::a_checkpoint_that_fails_leaves_the_store_as_it_was");
    };
    let directory = tempfile::tempdir_in(parent()).unwrap();
    let store = workload::open(directory.path(), &SMALL).unwrap();
    let outcome = workload::write(&store, &SMALL, |_| {});
    let mut failed = 0;
    for number in 1.. {
        let fault = Fault { effect: Effect::Fail(libc::ENOSPC), operations: MKDIR, from: number, to: number };
        layer.arm(directory.path(), "/checkpoint", &fault);
        let checkpoint = store.checkpoint();
        let hit = layer.hit();
        layer.disarm();
        if hit == 0 {
            break;
        }
        failed += i32::from(checkpoint.is_err());
        drop(checkpoint);
        assert!(!directory.path().join("checkpoint").exists(), "the links of attempt {number} are gone");
        outcome.check(&store, "after a checkpoint that failed");
    }
    assert!(failed > 2, "{failed} checkpoints failed");
    let copy = directory.path().join("copy");
    store.checkpoint().unwrap().unwrap().copy_to(&copy).unwrap();
    outcome.check(&workload::open(&copy, &SMALL).unwrap(), "a copy");
    store.close().unwrap();
}

/// A line for who reads the output of the tests.
fn show(line: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").unwrap();
}
