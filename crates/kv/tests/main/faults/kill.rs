//! A process is killed while its store meets faults and recovers from them.

use std::io::{self, BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use kv::{Direction, EngineOptions, EngineStore, KeyRange, KeyValueStore, KvError, Space, WriteBatch};

use super::CHANGES;
use super::layer::{Effect, Fault, Layer, command_under_layer};

const TEST: &str = "faults::kill::what_was_durable_survives_a_kill_during_a_recovery";
const DIRECTORY: &str = "TACHO_TEST_KV_DIRECTORY";
const A: Space = Space::new("a");
const B: Space = Space::new("b");
const ROUNDS: u64 = 6;
/// Batches between two faults, and batches that may wait for the disk.
const BETWEEN: u64 = 40;
const WAITING: u64 = 25;

fn open(directory: &Path) -> EngineStore {
    let options = EngineOptions { memtable_bytes: 16 << 10, ..EngineOptions::default() };
    EngineStore::open(directory, &options).unwrap()
}

/// The child: commits batches of two spaces, and prints how many are durable.
fn write_until_killed(layer: &Layer, directory: &Path) -> ! {
    let store = open(directory);
    let begin = numbers(&store, A).len() as u64;
    let mut told = 0;
    for number in begin.. {
        if number % BETWEEN == 0 {
            let from = (number * 7 % 61 + 1) as i64;
            let fault = Fault {
                effect: Effect::Fail(libc::ENOSPC),
                operations: CHANGES,
                from,
                to: from + (number % 3) as i64,
            };
            layer.arm(directory, "", &fault);
        }
        commit(&store, number);
        loop {
            let progress = store.progress();
            assert!(!progress.sealed, "{:?}", store.status());
            if progress.durable > told {
                told = progress.durable;
                let mut output = io::stdout().lock();
                writeln!(output, "durable {}", begin + told).unwrap();
            }
            if progress.committed - progress.durable < WAITING {
                break;
            }
            std::thread::yield_now();
        }
    }
    unreachable!("the numbers do not end before the process")
}

fn commit(store: &EngineStore, number: u64) {
    let mut batch = WriteBatch::new();
    batch.put(A, number.to_be_bytes().to_vec(), super::workload::value(600, number));
    batch.put(B, number.to_be_bytes().to_vec(), "b").put(B, "last", number.to_be_bytes().to_vec());
    while let Err(error) = store.commit(&batch) {
        assert!(matches!(error, KvError::Busy { .. }), "{error}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn numbers(store: &EngineStore, space: Space) -> Vec<u64> {
    let records = store.scan(space, &KeyRange::all(), Direction::Ascending).unwrap();
    let keys = records.map(|record| record.unwrap().0);
    keys.filter_map(|key| Some(u64::from_be_bytes(key[..].try_into().ok()?))).collect()
}

#[test]
fn what_was_durable_survives_a_kill_during_a_recovery() {
    if let Some(layer) = Layer::of_this_process() {
        write_until_killed(&layer, Path::new(&std::env::var(DIRECTORY).unwrap()));
    }
    let files = tempfile::tempdir().unwrap();
    // A kill loses nothing of what the system has, so a file system in memory will do.
    let directory = tempfile::tempdir_in(super::parent()).unwrap();
    let mut durable = 0;
    for round in 0..ROUNDS {
        let mut command = command_under_layer(files.path(), TEST);
        let mut child = command.env(DIRECTORY, directory.path()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut told = lines.filter_map(|line| line.strip_prefix("durable ")?.parse::<u64>().ok());
        for _ in 0..15 + 11 * round {
            durable = told.next().expect("the child goes on until it is killed");
        }
        std::thread::sleep(Duration::from_micros(900 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        durable = told.last().unwrap_or(durable);

        let store = open(directory.path());
        let all = numbers(&store, A);
        assert_eq!(all, numbers(&store, B), "a batch is whole or absent");
        assert_eq!(all, (0..all.len() as u64).collect::<Vec<_>>(), "the lost batches are the last ones");
        assert!(all.len() as u64 >= durable, "{durable} batches were durable, {} are there", all.len());
        let last = store.get(B, b"last").unwrap().unwrap();
        assert_eq!(u64::from_be_bytes(last[..].try_into().unwrap()) + 1, all.len() as u64);
    }
}
