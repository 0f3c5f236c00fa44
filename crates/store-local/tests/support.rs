//! Stores, rows and waits that several tests share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use model::{SeriesId, Timestamp, Value};
use store::conformance::{FoundRow, batch_of, collect, scan_all};
use store::{Durability, Maintenance, Sequence, StoreError, Writer};
use store_local::{Clock, CompactionLimits, Disk, LocalStore, Options, RecoveryReport};
use testkit::FaultyDisk;

/// The data directory on a faulty disk.
pub(crate) const DIR: &str = "/data";

/// Options with sizes so small that a few rows reach every boundary.
pub(crate) fn tiny() -> Options {
    Options {
        segment_bytes: 4096,
        preallocate: false,
        log_flush_bytes: 64 * 1024,
        memtable_flush_bytes: 2048,
        memtable_bytes_max: 256 * 1024,
        chunk_rows: 8,
        latest_series_max: 100,
        flush_parts_per_table_max: 3,
        row_group_rows: 16,
        page_rows: 4,
        manifest_rewrite_bytes: 2048,
        commit_interval_us: 0,
        lazy_write_us: 1_000,
        stalled_retry_us: 1_000,
        compaction: CompactionLimits {
            fan_in: 3,
            inputs_max: 6,
            class_bytes: 8 * 1024,
            part_bytes_max: 64 * 1024,
            part_rows_max: 400,
            quiet_rows: 30,
            quiet_ratio: 4,
            overlap_max: 12,
            merges_max: 2,
            plan_bytes: 64 * 1024,
        },
        ..Options::default()
    }
}

/// Tiny sizes, with flushes and merges only on command of the test.
pub(crate) fn tiny_manual() -> Options {
    Options { memtable_flush_bytes: usize::MAX, memtable_bytes_max: usize::MAX, compact: false, ..tiny() }
}

/// Like [`tiny_manual`], with a clock that jumps far at each reading, so that every wall clock is plausible.
pub(crate) fn tiny_leaping() -> Options {
    #[derive(Default)]
    struct Leaping(AtomicU64);
    impl Clock for Leaping {
        fn now_us(&self) -> u64 {
            self.0.fetch_add(30 * 86_400_000_000, Ordering::Relaxed)
        }
    }
    Options { clock: Arc::new(Leaping::default()), ..tiny_manual() }
}

/// Drops the rows that are too old at midnight of a day, and returns their number.
pub(crate) fn drop_at(store: &LocalStore, day: i64) -> u64 {
    let drop = || store.drop_expired(Timestamp::from_micros(day * 86_400_000_000)).unwrap();
    // The first run goes as far as the rows show, the second one as far as the clock shows.
    drop() + drop()
}

/// The paths whose names have this ending.
pub(crate) fn files(disk: &FaultyDisk, suffix: &str) -> Vec<PathBuf> {
    disk.paths().into_iter().filter(|path| path.to_string_lossy().ends_with(suffix)).collect()
}

pub(crate) fn open(
    disk: &(impl Disk + Clone),
    options: Options,
) -> Result<(LocalStore, RecoveryReport), StoreError> {
    LocalStore::open(Arc::new(disk.clone()), Path::new(DIR), options)
}

/// Waits until a durability class holds for a sequence. `false` when the store is sealed before.
pub(crate) fn reached(store: &LocalStore, class: Durability, sequence: Sequence) -> bool {
    eventually(|| {
        let progress = store.progress();
        if progress.reached(class) >= sequence { Some(true) } else { progress.sealed.then_some(false) }
    })
}

/// Calls `ask` until it gives an answer.
///
/// # Panics
/// After a minute, because no test takes that long.
pub(crate) fn eventually<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        match ask() {
            Some(answer) => return answer,
            None => std::thread::sleep(Duration::from_micros(50)),
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "what is waited for does not come");
    }
}

/// Appends one row with one number.
pub(crate) fn put(
    store: &LocalStore,
    series: SeriesId,
    ts: i64,
    n: impl Into<Number>,
    class: Durability,
) -> Result<Sequence, StoreError> {
    store.append(&batch_of(series, &[(ts, &[("n", n.into().0)])]), class)
}

/// A value that tests count with.
pub(crate) struct Number(Value);

impl From<i64> for Number {
    fn from(n: i64) -> Self {
        Self(Value::I64(n))
    }
}

impl From<Value> for Number {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

/// Appends one row and waits until it is durable. `None` when the store refuses or fails.
pub(crate) fn keep(store: &LocalStore, series: SeriesId, ts: i64, n: impl Into<Number>) -> Option<Sequence> {
    let ticket = put(store, series, ts, n, Durability::Fsync).ok()?;
    reached(store, Durability::Fsync, ticket).then_some(ticket)
}

/// Like [`keep`], but waits while the store is busy.
pub(crate) fn keep_in_the_end(store: &LocalStore, series: SeriesId, ts: i64, n: i64) {
    let ticket = eventually(|| match put(store, series, ts, n, Durability::Fsync) {
        Err(StoreError::Busy { .. }) => None,
        other => Some(other.unwrap()),
    });
    assert!(reached(store, Durability::Fsync, ticket), "the store is sealed");
}

/// All rows of the key `n`.
pub(crate) fn numbers(store: &LocalStore, series: SeriesId) -> Result<Vec<(i64, i64)>, StoreError> {
    let rows: Vec<FoundRow> = collect(store, &scan_all(series, &["n"]))?;
    let number = |(ts, values): FoundRow| match values.as_slice() {
        [Some(Value::I64(n))] => (ts, *n),
        [Some(Value::F64(n))] => (ts, *n as i64),
        other => panic!("not a number at {ts}: {other:?}"),
    };
    Ok(rows.into_iter().map(number).collect())
}
