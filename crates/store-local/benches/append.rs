//! Append throughput with fsync: `[CASE=text] cargo bench -p store-local [-- SECONDS [DIR]]`.
//!
//! One thread appends batches as fast as the store takes them, and waits a little when it answers busy. The benchmark prints
//! the CPU time of the store per row (encoding, memtable, latest values, log, flush), without the time to fill the batches.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints and may panic")]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use model::{Batch, SeriesId, SeriesKey, TimeRange, Timestamp, ValueRef};
use store::{Durability, Maintenance, Order, Reader, Scan, ScannedRow, StoreError, Writer};
use store_local::{LocalStore, Observer, Options, RealDisk};

const SERIES: u64 = 20_000;

#[derive(Default)]
struct Syncs {
    count: AtomicU64,
    micros: AtomicU64,
    slowest_micros: AtomicU64,
    over_5_ms: AtomicU64,
    flushes: AtomicU64,
    flush_micros: AtomicU64,
    part_bytes: AtomicU64,
}

impl Observer for Syncs {
    fn synced(&self, duration: Duration, _bytes: u64, _rows: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let micros = duration.as_micros() as u64;
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.slowest_micros.fetch_max(micros, Ordering::Relaxed);
        self.over_5_ms.fetch_add(u64::from(micros > 5_000), Ordering::Relaxed);
    }

    fn flushed(&self, duration: Duration, _parts: u64, _rows: u64, bytes: u64) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flush_micros.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
        self.part_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Fills a batch with rows of successive series.
type Fill = fn(&mut Batch, &[SeriesId], u64);

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let seconds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(5);
    let root = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let cases: [(&str, usize, Option<u64>, Fill); 5] = [
        ("4 fields, batches of 1000 rows", 1000, None, vehicle),
        ("4 fields, batches of 50 rows", 50, None, vehicle),
        ("4 fields, one row at a time", 1, None, vehicle),
        ("4 fields, batches of 50 rows, 200,000 rows/s", 50, Some(200_000), vehicle),
        ("1 f64, batches of 1000 rows", 1000, None, single),
    ];
    let only = std::env::var("CASE").unwrap_or_default();
    for (name, rows, rate, fill) in cases.into_iter().filter(|case| case.0.contains(&only)) {
        run(name, rows, rate, fill, Duration::from_secs(seconds), &root);
    }
}

fn vehicle(batch: &mut Batch, series: &[SeriesId], row: u64) {
    let mut builder = batch.builder();
    let wobble = (row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / 1e5;
    builder.field("speed", ValueRef::F64(50.0 + wobble));
    builder.field("rpm", ValueRef::I64(1_500 + (row % 700) as i64));
    builder.field("fuel", ValueRef::F64((row % 1000) as f64 / 10.0));
    builder.field("ignition", ValueRef::Bool(!row.is_multiple_of(17)));
    builder.row(series[(row % SERIES) as usize], at(row));
    builder.finish();
}

fn single(batch: &mut Batch, series: &[SeriesId], row: u64) {
    let mut builder = batch.builder();
    builder.field("value", ValueRef::F64((row % 1000) as f64 / 7.0));
    builder.row(series[(row % SERIES) as usize], at(row));
    builder.finish();
}

fn at(row: u64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + (row / SERIES) as i64 * 1_000_000)
}

fn run(name: &str, rows: usize, rate: Option<u64>, fill: Fill, time: Duration, root: &std::path::Path) {
    let dir = tempfile::tempdir_in(root).unwrap();
    let syncs = Arc::new(Syncs::default());
    let options = Options { observer: Some(syncs.clone()), ..Options::default() };
    let (store, _) = LocalStore::open(Arc::new(RealDisk), dir.path(), options).unwrap();
    let key = |number: u64| SeriesKey::device("telemetry", &format!("dev-{number}")).unwrap();
    let series: Vec<SeriesId> = (0..SERIES).map(|number| store.series(&key(number)).unwrap()).collect();

    let (begun, cpu) = (Instant::now(), cpu_seconds());
    let (mut appended, mut points, mut busy) = (0_u64, 0_u64, 0_u64);
    let (mut batch, mut filling) = (Batch::new(), Duration::ZERO);
    loop {
        let fill_begun = Instant::now();
        batch.clear();
        (0..rows as u64).for_each(|row| fill(&mut batch, &series, appended + row));
        filling += fill_begun.elapsed();
        loop {
            match store.append(&batch, Durability::Fsync) {
                Ok(_) => break,
                Err(StoreError::Busy { .. }) => {
                    busy += 1;
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(error) => panic!("{error}"),
            }
        }
        appended += batch.len() as u64;
        if let Some(rate) = rate {
            let due = Duration::from_micros(appended * 1_000_000 / rate);
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        points += batch.points() as u64;
        if appended % 1000 == 0 && begun.elapsed() >= time {
            break;
        }
    }
    let last = store.progress().appended;
    while store.progress().durable < last {
        std::thread::sleep(Duration::from_micros(100));
    }
    let (spent, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds() - cpu - filling.as_secs_f64());
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{name}: {:.0} rows/s, {:.0} points/s, {:.2} us CPU/row, {} busy, {} syncs of {:.0} us (slowest {} us, {} over 5 ms), {} flushes of {:.0} ms, {} MB parts",
        appended as f64 / spent,
        points as f64 / spent,
        cpu * 1e6 / appended as f64,
        busy,
        load(&syncs.count),
        load(&syncs.micros) as f64 / load(&syncs.count).max(1) as f64,
        load(&syncs.slowest_micros),
        load(&syncs.over_5_ms),
        load(&syncs.flushes),
        load(&syncs.flush_micros) as f64 / 1e3 / load(&syncs.flushes).max(1) as f64,
        load(&syncs.part_bytes) / 1_000_000,
    );
    store.flush().unwrap();
    read(&store, &series);
    store.close().unwrap();
}

/// Reads single series back from parts.
fn read(store: &LocalStore, series: &[SeriesId]) {
    for (what, limit) in [("newest 100 rows", 100), ("all rows", usize::MAX)] {
        let (begun, mut rows) = (Instant::now(), 0_u64);
        for id in series.iter().step_by(200) {
            let keys = ["speed", "rpm", "value"].map(str::to_owned).to_vec();
            let scan = Scan { series: *id, keys, range: TimeRange::ALL, order: Order::Descending, limit };
            let count = &mut |_: ScannedRow<'_>| {
                rows += 1;
                ControlFlow::Continue(())
            };
            store.scan(&scan, count).unwrap();
        }
        let micros = begun.elapsed().as_micros() as f64 / 100.0;
        println!(
            "    {what} of a series out of {} parts: {micros:.0} us for {} rows",
            store.status().parts,
            rows / 100
        );
    }
}

/// CPU time of this process, user and system.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}
