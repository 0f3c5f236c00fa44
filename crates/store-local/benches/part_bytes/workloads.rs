//! Whole workloads, each flushed into one part.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Batch, SeriesId, SeriesKey, TimeRange, Timestamp, ValueRef};
use parquet::file::reader::{FileReader, SerializedFileReader};
use store::{Durability, Maintenance, Order, Reader, Scan, ScannedRow, Store, StoreError, Writer};
use store_local::{LocalStore, Options, RealDisk};

/// Midnight, so that a day of rows is one part.
const BEGIN_US: i64 = 1_699_920_000_000_000;
const INTERVAL_US: i64 = 10_000_000;

/// A simple random number generator with a fixed seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 33) % bound
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

struct Workload {
    name: &'static str,
    series: usize,
    rows: usize,
    /// Fields of one row: (row builder, state of the series, chance).
    fill: fn(&mut model::BatchBuilder<'_>, &mut i64, &mut Random),
    key: &'static str,
}

const WORKLOADS: [Workload; 7] = [
    Workload { name: "walk", series: 1_000, rows: 8_640, fill: walk, key: "value" },
    Workload { name: "random", series: 1_000, rows: 1_000, fill: random, key: "value" },
    Workload { name: "counter", series: 1_000, rows: 1_000, fill: counter, key: "value" },
    Workload { name: "vehicle", series: 1_000, rows: 1_000, fill: vehicle, key: "speed" },
    Workload { name: "walk-20k", series: 20_000, rows: 100, fill: walk, key: "value" },
    Workload { name: "walk-1m", series: 1_000_000, rows: 3, fill: walk, key: "value" },
    Workload { name: "vehicle-1m", series: 1_000_000, rows: 2, fill: vehicle, key: "speed" },
];

fn walk(row: &mut model::BatchBuilder<'_>, state: &mut i64, random: &mut Random) {
    *state += random.below(51) as i64 - 25;
    row.field("value", ValueRef::F64(*state as f64 / 100.0));
}

fn random(row: &mut model::BatchBuilder<'_>, _: &mut i64, random: &mut Random) {
    row.field("value", ValueRef::F64(random.unit()));
}

fn counter(row: &mut model::BatchBuilder<'_>, state: &mut i64, random: &mut Random) {
    *state += random.below(1000) as i64;
    row.field("value", ValueRef::F64(*state as f64));
}

fn vehicle(row: &mut model::BatchBuilder<'_>, state: &mut i64, random: &mut Random) {
    *state += random.below(51) as i64 - 25;
    row.field("speed", ValueRef::F64((*state).rem_euclid(2000) as f64 / 10.0));
    row.field("rpm", ValueRef::I64(800 + (*state).rem_euclid(2000) * 2 + random.below(50) as i64));
    row.field("lat", ValueRef::F64(50.9 + *state as f64 * 1e-5 + random.unit() * 1e-5));
    row.field("ignition", ValueRef::Bool(random.below(100) != 0));
    row.field("gear", ValueRef::String(["P", "D", "R", "N"][(random.below(40) / 13) as usize]));
}

pub(crate) fn run(case: &str) {
    for workload in WORKLOADS.iter().filter(|workload| case.is_empty() || workload.name == case) {
        let level = std::env::var("ZSTD").ok().and_then(|level| level.parse().ok());
        let page_rows = std::env::var("PAGE_ROWS").ok().and_then(|rows| rows.parse().ok());
        measure(workload, level, page_rows);
    }
}

fn measure(workload: &Workload, level: Option<i32>, page_rows: Option<usize>) {
    let dir = tempfile::tempdir().unwrap();
    let defaults = Options::default();
    let options = Options {
        memtable_flush_bytes: usize::MAX,
        memtable_bytes_max: usize::MAX,
        log_flush_bytes: u64::MAX,
        latest_series_max: 1,
        zstd_level: level.unwrap_or(defaults.zstd_level),
        page_rows: page_rows.unwrap_or(defaults.page_rows),
        ..defaults
    };
    let (store, _) = LocalStore::open(Arc::new(RealDisk), dir.path(), options).unwrap();
    let key = |number: usize| {
        SeriesKey::new("m", &[("device", format!("dev-{number}").as_str()), ("site", ["a", "b"][number % 2])])
    };
    let series: Vec<SeriesId> =
        (0..workload.series).map(|number| busy(|| store.series(&key(number).unwrap()))).collect();
    fill(&store, workload, &series);
    let begun = Instant::now();
    store.flush().unwrap();
    let spent = begun.elapsed().as_nanos() as f64;
    let rows = (workload.series * workload.rows) as f64;
    println!(
        "{}: {} series x {} rows: {:.3} bytes/row, flush {:.0} ns/row",
        workload.name,
        workload.series,
        workload.rows,
        store.status().part_bytes as f64 / rows,
        spent / rows
    );
    columns(&dir.path().join("parts"), rows);
    read(&store, workload, &series);
}

fn busy<T>(mut ask: impl FnMut() -> Result<T, StoreError>) -> T {
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(StoreError::Busy { .. }) => std::thread::sleep(Duration::from_micros(200)),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Rows in the order of arrival: one row of each series, then the next row of each.
fn fill(store: &LocalStore, workload: &Workload, series: &[SeriesId]) {
    let mut random = Random::new();
    let mut states: Vec<i64> = series.iter().map(|_| random.below(10_000) as i64).collect();
    let mut batch = Batch::new();
    for row in 0..workload.rows as i64 {
        for (ids, states) in series.chunks(10_000).zip(states.chunks_mut(10_000)) {
            batch.clear();
            let mut builder = batch.builder();
            for (id, state) in ids.iter().zip(states) {
                (workload.fill)(&mut builder, state, &mut random);
                builder.row(*id, Timestamp::from_micros(BEGIN_US + row * INTERVAL_US));
            }
            builder.finish();
            busy(|| store.append(&batch, Durability::Memory));
        }
    }
}

/// The bytes of each column, and the bytes outside of columns.
fn columns(parts: &Path, rows: f64) {
    for part in std::fs::read_dir(parts).unwrap() {
        let path = part.unwrap().path();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let metadata = reader.metadata();
        let mut rest = path.metadata().unwrap().len() as i64;
        for (index, column) in metadata.file_metadata().schema_descr().columns().iter().enumerate() {
            let chunks = metadata.row_groups().iter().map(|group| group.column(index));
            let bytes: i64 = chunks.clone().map(|chunk| chunk.compressed_size()).sum();
            rest -= bytes;
            let encodings: Vec<String> = chunks
                .take(1)
                .flat_map(|chunk| chunk.encodings())
                .map(|encoding| encoding.to_string())
                .collect();
            println!("    {}: {:.4} bytes/row ({})", column.name(), bytes as f64 / rows, encodings.join(" "));
        }
        println!("    indexes and footer: {:.4} bytes/row", rest as f64 / rows);
    }
}

/// One hour of one series, the first time and again.
fn read(store: &LocalStore, workload: &Workload, series: &[SeriesId]) {
    let start = BEGIN_US + INTERVAL_US * (workload.rows as i64 / 2);
    let range = TimeRange::new(Timestamp::from_micros(start), Timestamp::from_micros(start + 3_600_000_000));
    for round in ["first", "again"] {
        let (begun, mut rows) = (Instant::now(), 0_u64);
        let asked = series.iter().step_by(series.len() / 50);
        let count = asked.len() as f64;
        for id in asked {
            let keys = vec![workload.key.to_owned()];
            let scan = Scan { series: *id, keys, range, order: Order::Ascending, limit: usize::MAX };
            let visit = &mut |_: ScannedRow<'_>| {
                rows += 1;
                ControlFlow::Continue(())
            };
            store.scan(&scan, visit).unwrap();
        }
        let micros = begun.elapsed().as_nanos() as f64 / 1e3 / count;
        println!("    one hour of one series, {round}: {micros:.1} us for {:.0} rows", rows as f64 / count);
    }
}
