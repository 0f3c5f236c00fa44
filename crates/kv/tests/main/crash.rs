//! A process that writes is killed at random moments. What it was told to be durable is there, and batches are whole.

use std::io::{self, BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kv::{Direction, EngineOptions, EngineStore, KeyRange, KeyValueStore, Space, WriteBatch};

const A: Space = Space::new("a");
const B: Space = Space::new("b");
const DIRECTORY: &str = "TACHO_TEST_KV_DIRECTORY";
const ROUNDS: u64 = 6;

/// The child: commits batches of two spaces forever, and prints each sequence that is durable.
fn write_until_killed(directory: &Path) -> ! {
    let store = EngineStore::open(directory, &EngineOptions::default()).unwrap();
    let begin = count(&store, A);
    let mut out = io::stdout();
    for number in begin.. {
        let mut batch = WriteBatch::new();
        batch.put(A, number.to_be_bytes().to_vec(), vec![7; 300]).put(B, number.to_be_bytes().to_vec(), "b");
        let sequence = store.commit(&batch).unwrap();
        while store.progress().durable < sequence {
            std::thread::yield_now();
        }
        writeln!(out, "durable {number}").unwrap();
    }
    unreachable!("the numbers do not end before the process")
}

fn count(store: &dyn KeyValueStore, space: Space) -> u64 {
    store.scan(space, &KeyRange::all(), Direction::Ascending).unwrap().map(Result::unwrap).count() as u64
}

#[test]
fn what_was_durable_survives_sigkill_and_batches_are_whole() {
    // The test starts itself as the child.
    if let Ok(directory) = std::env::var(DIRECTORY) {
        write_until_killed(Path::new(&directory));
    }
    let directory = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "crash::what_was_durable_survives_sigkill_and_batches_are_whole",
                "--exact",
                "--nocapture",
            ])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut durable = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("durable ").and_then(|number| number.parse::<u64>().ok()));
        for _ in 0..20 + 37 * round {
            seen = durable.next().expect("the child continues until it is killed");
        }
        std::thread::sleep(Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        seen = durable.last().unwrap_or(seen);

        let store = EngineStore::open(directory.path(), &EngineOptions::default()).unwrap();
        let (a, b) = (count(&store, A), count(&store, B));
        assert_eq!(a, b, "a batch is whole or absent");
        assert!(a > seen, "{seen} was durable, {a} batches are there");
    }
}
