//! A small store whose rows are known, on a disk in memory: what the targets of the store damage and open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{SeriesId, SeriesKey, Value};
use store::conformance::{FoundRow, batch_of, collect, scan_all, wait};
use store::{Durability, Maintenance, Reader, StoreError, Writer};
use store_local::{LocalStore, Options, RecoveryReport};
use testkit::FaultyDisk;

/// Rows, numbered from zero; the number is also the time in microseconds.
pub const ROWS: i64 = 16;
/// The row that is appended after a recovery.
pub const NEW_ROW: i64 = ROWS;
/// Two segments hold all rows.
pub const SEGMENT_BYTES: u64 = 1024;

const DIR: &str = "/data";
const TABLE: &str = "t";
const DEVICES: [&str; 2] = ["a", "b"];
const KEYS: [&str; 3] = ["n", "s", "x"];

/// The files of a store after the end of its process.
#[derive(Clone)]
pub struct Files(Vec<(PathBuf, Vec<u8>)>);

impl Files {
    /// Writes a store whose last `in_log` rows are in the log and the others in two parts.
    pub fn write(in_log: i64, close: bool) -> Self {
        let disk = FaultyDisk::new();
        let (store, _) = open(&disk).expect("an empty disk is a store");
        for n in 0..ROWS {
            let series = store.series(&key_of(n)).expect("a healthy store");
            keep(&store, series, n);
            if n == 4 && in_log < ROWS || n == ROWS - in_log - 1 {
                store.flush().expect("a healthy store");
            }
        }
        if close {
            store.close().expect("a healthy store");
        }
        drop(store);
        Self(disk.paths().into_iter().map(|path| (path.clone(), disk.content(&path))).collect())
    }

    /// Paths whose name ends with `suffix`.
    pub fn paths(&self, suffix: &str) -> Vec<PathBuf> {
        let paths = self.0.iter().map(|(path, _)| path);
        paths.filter(|path| path.to_string_lossy().ends_with(suffix)).cloned().collect()
    }

    /// The content of a file.
    pub fn content(&self, path: &Path) -> &[u8] {
        let found = self.0.iter().find(|(candidate, _)| candidate == path);
        &found.expect("a path of these files").1
    }

    /// A disk with these files, one of them with other bytes.
    pub fn disk_with(&self, path: &Path, bytes: &[u8]) -> FaultyDisk {
        let disk = FaultyDisk::new();
        for (other, content) in &self.0 {
            disk.put(other, if other == path { bytes.to_vec() } else { content.clone() });
        }
        disk
    }
}

/// Opens the store on a disk.
pub fn open(disk: &FaultyDisk) -> Result<(LocalStore, RecoveryReport), StoreError> {
    let options = Options {
        segment_bytes: SEGMENT_BYTES,
        preallocate: false,
        log_flush_bytes: u64::MAX,
        memtable_flush_bytes: usize::MAX,
        memtable_bytes_max: usize::MAX,
        chunk_rows: 4,
        row_group_rows: 4,
        page_rows: 2,
        commit_interval_us: 0,
        // A new series waits for its first row, so that the same frames are written each time.
        lazy_write_us: 1_000_000,
        ..Options::default()
    };
    LocalStore::open(Arc::new(disk.clone()), Path::new(DIR), options)
}

/// Appends row `n` and waits until it is durable.
pub fn keep(store: &LocalStore, series: SeriesId, n: i64) {
    let values = values_of(n);
    let fields: Vec<(&str, Value)> = KEYS.into_iter().zip(values).filter_map(with_value).collect();
    let ticket = store.append(&batch_of(series, &[(n, &fields)]), Durability::Fsync);
    wait(store, Durability::Fsync, ticket.expect("an open store takes a row"));
}

/// The series of row `n`.
pub fn key_of(n: i64) -> SeriesKey {
    SeriesKey::device(TABLE, DEVICES[(n % 2) as usize]).expect("a valid name")
}

/// The numbers of the rows of which something can be read, or the first refusal. Panics when anything is served that
/// was not written.
pub fn readable(store: &LocalStore) -> Result<Rows, StoreError> {
    let mut rows = Rows::default();
    for (parity, device) in DEVICES.into_iter().enumerate() {
        let key = SeriesKey::device(TABLE, device).expect("a valid name");
        let Some(series) = store.find_series(&key) else { continue };
        let found: Vec<FoundRow> = collect(store, &scan_all(series, &KEYS))?;
        for (n, values) in found {
            assert!(
                (0..=NEW_ROW).contains(&n) && n % 2 == parity as i64,
                "invented: {device} {n} {values:?}"
            );
            let written = values_of(n);
            let right =
                values.iter().zip(&written).all(|(found, written)| found.is_none() || found == written);
            assert!(right, "wrong: {device} {n} {values:?}");
            rows.numbers.push(n);
            rows.incomplete |= values[..] != written;
        }
        for latest in store.latest(series, None)? {
            let n = latest.ts.micros();
            let value =
                KEYS.iter().position(|key| *key == latest.key).and_then(|key| values_of(n)[key].clone());
            assert!(
                rows.numbers.contains(&n) && value.as_ref() == Some(&latest.value),
                "wrong latest: {device} {latest:?}"
            );
        }
    }
    rows.numbers.sort_unstable();
    assert!(rows.numbers.is_sorted_by(|one, next| one < next), "served twice: {:?}", rows.numbers);
    Ok(rows)
}

/// What could be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Row numbers, ascending.
    pub numbers: Vec<i64>,
    /// Some row lacks a value that it had.
    pub incomplete: bool,
}

impl Rows {
    /// Whether nothing that was written at first is missing.
    pub fn all(&self) -> bool {
        !self.incomplete && (0..ROWS).all(|n| self.numbers.contains(&n))
    }
}

/// Continues after a recovery: one more row, an orderly end, and a second recovery that has nothing to complain about.
pub fn goes_on(disk: &FaultyDisk, store: LocalStore, found: &Rows) {
    let series = store.series(&key_of(NEW_ROW)).expect("an open store takes a series");
    keep(&store, series, NEW_ROW);
    // The flush that recovery asks for after damage makes parts of what is left.
    store.flush().expect("a healthy disk takes a flush");
    store.close().expect("a healthy disk lets a store end");
    drop(store);
    let (store, report) = open(disk).expect("what a recovered store wrote can be opened");
    let clean = report.clean_shutdown && report.torn_tail.is_none() && report.damages.is_empty();
    assert!(clean, "the second recovery found: {report:?}");
    let again = readable(&store).expect("what a recovered store wrote can be read");
    assert!(again.numbers.contains(&NEW_ROW), "an acknowledged row is gone: {again:?}");
    let kept = found.numbers.iter().all(|n| again.numbers.contains(n));
    assert!(kept && (found.incomplete || !again.incomplete), "{found:?} became {again:?}");
}

/// Whether an error is [`StoreError::Corrupt`] and names this file.
pub fn names(error: &StoreError, file: &Path) -> bool {
    matches!(error, StoreError::Corrupt { path, .. } if path == file)
}

fn values_of(n: i64) -> [Option<Value>; 3] {
    let text = Value::String(format!("text of {n}"));
    let third = match n % 3 {
        0 => Some(Value::F64(n as f64 / 3.0)),
        1 => Some(Value::Bool(n % 2 == 0)),
        _ => None,
    };
    [Some(Value::I64(n * 1_000_003)), Some(text), third]
}

fn with_value((key, value): (&str, Option<Value>)) -> Option<(&str, Value)> {
    value.map(|value| (key, value))
}
