//! Reads of whole tables, of some series and of one: `[CASE=text] [SERIES=n] [ROWS=n] cargo bench -p store-local --bench read`.
//!
//! Three stores with the same rows: in one part as compaction leaves them, in ten parts as ten flushes leave them, and
//! in memory. Then one with many tables of one number, with parts of their own and with parts that they share. Every read is done several times and the fastest is printed; *cold* is without the cache of decoded
//! columns, files come from the page cache all the same.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints and may panic")]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use model::{Batch, SeriesId, SeriesKey, TimeRange, Timestamp, ValueRef};
use store::{Durability, Order, ReadOrder, Scan, TableRead, TableSnapshot};
use store::{Maintenance, Reader, Writer, conformance};
use store_local::{LocalStore, Options, RealDisk};

const START_US: i64 = 1_700_006_400_000_000;
const SECOND_US: i64 = 1_000_000;

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() {
    let (series, rows) = (number("SERIES", 500), number("ROWS", 7_200));
    let only = std::env::var("CASE").unwrap_or_default();
    for (name, flushes, cache) in [
        ("one part, cold", 1, 0),
        ("one part, warm", 1, 256 << 20),
        ("ten parts, cold", 10, 0),
        ("ten parts, warm", 10, 256 << 20),
        ("memory", 0, 256 << 20),
    ] {
        if name.contains(&only) {
            let dir = tempfile::tempdir().unwrap();
            let store = filled(dir.path(), series, rows, flushes, cache);
            println!(
                "{name}: {series} series of {rows} rows with 4 fields, {} bytes",
                store.status().part_bytes
            );
            whole(&store);
            some(&store, series);
            single(&store, series, rows);
            latest(&store, series);
            store.close().unwrap();
        }
    }
    if "wide".contains(&only) {
        wide();
    }
    for narrow in [false, true] {
        if "metrics".contains(&only) {
            metrics(narrow);
        }
    }
}

fn at(row: usize) -> Timestamp {
    Timestamp::from_micros(START_US + row as i64 * SECOND_US)
}

fn device(number: usize) -> SeriesKey {
    SeriesKey::device("telemetry", &format!("a device with the number {number}")).unwrap()
}

fn open(dir: &std::path::Path, cache: usize) -> LocalStore {
    let options = Options {
        preallocate: false,
        memtable_flush_bytes: usize::MAX,
        memtable_bytes_max: usize::MAX,
        log_flush_bytes: u64::MAX,
        array_cache_bytes_max: cache,
        ..Options::default()
    };
    LocalStore::open(Arc::new(RealDisk), dir, options).unwrap().0
}

/// Rows second by second over all series, as they come from a fleet.
fn filled(dir: &std::path::Path, series: usize, rows: usize, flushes: usize, cache: usize) -> LocalStore {
    let store = open(dir, cache);
    let ids: Vec<SeriesId> = (0..series).map(|number| store.series(&device(number)).unwrap()).collect();
    let mut batch = Batch::new();
    for row in 0..rows {
        batch.clear();
        for (number, id) in ids.iter().enumerate() {
            let mut builder = batch.builder();
            let step = (row * 7 + number * 13) % 1000;
            builder.field("speed", ValueRef::F64(step as f64 / 10.0));
            builder.field("rpm", ValueRef::I64(800 + step as i64));
            builder.field("ignition", ValueRef::Bool(row % 100 != 0));
            builder.field("gear", ValueRef::String(["neutral", "first", "second and more"][step % 3]));
            builder.row(*id, at(row));
            builder.finish();
        }
        while store.append(&batch, Durability::Memory).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let due = (row + 1).is_multiple_of(rows.div_ceil(flushes.max(1))) || row + 1 == rows;
        if flushes > 0 && due {
            store.flush().unwrap();
        }
    }
    store
}

fn fastest(times: usize, mut run: impl FnMut()) -> Duration {
    let once = |_| {
        let begun = Instant::now();
        run();
        begun.elapsed()
    };
    (0..times).map(once).min().unwrap()
}

fn all(columns: &[usize]) -> TableRead {
    TableRead {
        columns: columns.to_vec(),
        series: None,
        range: TimeRange::ALL,
        order: ReadOrder::Any,
        limit: None,
        batch_rows: 8192,
        readers_max: 1,
        tag_runs: false,
    }
}

/// Rows, and the sum of the last column if it is one of f64.
fn drain(snapshot: &dyn TableSnapshot, read: &TableRead) -> (usize, f64) {
    let (mut rows, mut sum) = (0, 0.0);
    for mut reader in snapshot.read(read).unwrap() {
        while let Some(batch) = reader.next().unwrap() {
            rows += batch.num_rows();
            let column = batch.columns().last().and_then(|column| column.as_primitive_opt::<Float64Type>());
            sum += column.and_then(arrow_sum).unwrap_or(0.0);
        }
    }
    (rows, sum)
}

fn arrow_sum(array: &arrow_array::Float64Array) -> Option<f64> {
    Some(array.values().iter().sum())
}

/// Columns: 0 device, 1 ts, 2 speed, 3 rpm, 4 ignition, 5 gear.
fn whole(store: &LocalStore) {
    let cases: [(&str, &[usize], ReadOrder); 6] = [
        ("count", &[], ReadOrder::Any),
        ("one f64", &[2], ReadOrder::Any),
        ("ts, one f64", &[1, 2], ReadOrder::Any),
        ("device, one f64", &[0, 2], ReadOrder::Any),
        ("all columns", &[0, 1, 3, 4, 5, 2], ReadOrder::Any),
        ("all columns in order", &[0, 1, 3, 4, 5, 2], ReadOrder::SeriesThenTime),
    ];
    for (name, columns, order) in cases {
        let read = TableRead { order, ..all(columns) };
        let mut rows = 0;
        let spent = fastest(5, || {
            let snapshot = store.snapshot(&conformance::table("telemetry")).unwrap().unwrap();
            rows = drain(snapshot.as_ref(), &read).0;
        });
        let millions = rows as f64 / spent.as_secs_f64() / 1e6;
        println!("    {name:24} {millions:9.1} M rows/s  {:8.2} ms", spent.as_secs_f64() * 1e3);
    }
    let last_minute = TimeRange::new(at(number("ROWS", 7_200) - 60), Timestamp::MAX);
    let spent = fastest(5, || {
        let snapshot = store.snapshot(&conformance::table("telemetry")).unwrap().unwrap();
        drain(snapshot.as_ref(), &TableRead { range: last_minute, ..all(&[0, 1, 2]) });
    });
    println!("    {:24} {:22.2} ms", "all series, last minute", spent.as_secs_f64() * 1e3);
}

fn some(store: &LocalStore, series: usize) {
    let ids: Vec<u32> = (0..series as u32).step_by((series / 100).max(1)).collect();
    let cases = [
        ("1 series, all rows", 1, TimeRange::ALL, ReadOrder::Any, None),
        ("1 series, last 100", 1, TimeRange::ALL, ReadOrder::Time(Order::Descending), Some(100)),
        ("1 series, 5 minutes", 1, TimeRange::new(at(600), at(900)), ReadOrder::Time(Order::Ascending), None),
        ("100 series, 5 minutes", 100, TimeRange::new(at(600), at(900)), ReadOrder::Any, None),
        ("100 series, all rows", 100, TimeRange::ALL, ReadOrder::SeriesThenTime, None),
    ];
    for (name, count, range, order, limit) in cases {
        let mut turn = 0;
        let mut rows = 0;
        let spent = fastest(20, || {
            turn = (turn + 37) % ids.len();
            let wanted = ids.iter().cycle().skip(turn).take(count).copied().collect();
            let snapshot = store.snapshot(&conformance::table("telemetry")).unwrap().unwrap();
            let read = TableRead { series: Some(wanted), range, order, limit, ..all(&[1, 2]) };
            rows = drain(snapshot.as_ref(), &read).0;
        });
        println!("    {name:24} {:10.1} us for {rows} rows", spent.as_secs_f64() * 1e6);
    }
}

/// What a dashboard of a fleet shows.
fn latest(store: &LocalStore, series: usize) {
    let mut values = 0;
    let spent = fastest(20, || {
        values = (0..1_000).map(|n| store.latest(SeriesId((n % series) as u64), None).unwrap().len()).sum();
    });
    println!("    {:24} {:10.1} us for {values} values", "latest of 1000 series", spent.as_secs_f64() * 1e6);
}

fn single(store: &LocalStore, series: usize, rows: usize) {
    let scan = |keys: &[&str], order, limit, range| Scan {
        series: SeriesId(series as u64 / 2),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        range,
        order,
        limit,
    };
    let hour = TimeRange::new(at(rows.saturating_sub(3600)), Timestamp::MAX);
    let cases = [
        ("scan, 1 field, 1 h", scan(&["speed"], Order::Ascending, usize::MAX, hour)),
        (
            "scan, 4 fields, 1 h",
            scan(&["speed", "rpm", "ignition", "gear"], Order::Ascending, usize::MAX, hour),
        ),
        ("scan, newest 100", scan(&["speed"], Order::Descending, 100, TimeRange::ALL)),
    ];
    for (name, scan) in cases {
        let mut rows = 0;
        let spent = fastest(50, || rows = visited(store, &scan));
        println!("    {name:24} {:10.1} us for {rows} rows", spent.as_secs_f64() * 1e6);
    }
}

fn visited(store: &LocalStore, scan: &Scan) -> usize {
    let mut rows = 0;
    store
        .scan(scan, &mut |row| {
            rows += usize::from(row.values.iter().any(Option::is_some));
            ControlFlow::Continue(())
        })
        .unwrap();
    rows
}

/// One device, one hour at 1 Hz, 20 fields.
fn wide() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), 256 << 20);
    let ids: Vec<SeriesId> = (0..20).map(|number| store.series(&device(number)).unwrap()).collect();
    let names: Vec<String> = (0..20).map(|field| format!("field_{field}")).collect();
    let mut batch = Batch::new();
    for row in 0..3_600 {
        batch.clear();
        for id in &ids {
            let mut builder = batch.builder();
            for (field, name) in names.iter().enumerate() {
                builder.field(name, ValueRef::F64(((row * field) % 977) as f64 / 8.0));
            }
            builder.row(*id, at(row));
            builder.finish();
        }
        store.append(&batch, Durability::Memory).unwrap();
    }
    let scan = Scan {
        series: ids[7],
        keys: names,
        range: TimeRange::ALL,
        order: Order::Ascending,
        limit: usize::MAX,
    };
    for place in ["memory", "a part"] {
        let spent = fastest(50, || assert_eq!(visited(&store, &scan), 3_600));
        println!("wide: 20 fields of 3600 rows in {place}: {:.1} us", spent.as_secs_f64() * 1e6);
        store.flush().unwrap();
    }
    store.close().unwrap();
}

/// A thousand tables with ten series each, whose numbers come by turns.
fn metrics(narrow: bool) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { preallocate: false, narrow_parts: narrow, compact: false, ..Options::default() };
    let store = LocalStore::open(Arc::new(RealDisk), dir.path(), options).unwrap().0;
    let key = |number: usize| {
        let (host, table) = (format!("host{}", number / 1_000), format!("metric.{}", number % 1_000));
        SeriesKey::new(table.as_str(), &[("host", host.as_str())]).unwrap()
    };
    let ids: Vec<SeriesId> = (0..10_000).map(|number| store.series(&key(number)).unwrap()).collect();
    let mut batch = Batch::new();
    for row in 0..360 {
        batch.clear();
        for (number, id) in ids.iter().enumerate() {
            let mut builder = batch.builder();
            builder.field("value", ValueRef::F64(((row * 7 + number) % 1000) as f64 / 10.0));
            builder.row(*id, at(row));
            builder.finish();
        }
        while store.append(&batch, Durability::Memory).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    store.flush().unwrap();
    let status = store.status();
    println!("1000 tables, shared parts {narrow}: {} parts, {} bytes", status.parts, status.part_bytes);
    // Each table is read once and so for the first time, but for the last case.
    let mut turn = 0;
    for name in ["one series, first time", "one series, again"] {
        let first = name.contains("first");
        let spent = fastest(20, || {
            turn += usize::from(first);
            let scan = Scan {
                series: ids[5_000 + turn * 17],
                keys: vec!["value".to_owned()],
                range: TimeRange::ALL,
                order: Order::Ascending,
                limit: usize::MAX,
            };
            assert_eq!(visited(&store, &scan), 360);
        });
        println!("    {name:24} {:10.1} us for 360 rows", spent.as_secs_f64() * 1e6);
    }
    for name in ["one table, first time", "one table, again"] {
        let first = name.contains("first");
        let spent = fastest(20, || {
            turn += usize::from(first);
            let snapshot = store
                .snapshot(&conformance::table(&format!("metric.{}", turn * 19 % 1_000)))
                .unwrap()
                .unwrap();
            assert_eq!(drain(snapshot.as_ref(), &all(&[0, 1, 2])).0, 3_600);
        });
        println!("    {name:24} {:10.1} us for 3600 rows", spent.as_secs_f64() * 1e6);
    }
    store.close().unwrap();
}
