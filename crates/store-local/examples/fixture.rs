//! Writes the data directory that `tests/fixtures.rs` opens: `cargo run -p store-local --example fixture -- DIR`. With the name of a
//! second one behind it a backup of the first, which `tests/backup.rs` restores.
//!
//! Run it when a format gets a new version, into a new directory next to those of released versions, which stay and stay tested.

#![allow(clippy::unwrap_used, reason = "a developer's tool may panic")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Batch, SeriesKey, TimeRange, Timestamp, ValueRef};
use store::backup::{Extra, write_stream};
use store::{Deletion, Durability, SeriesSet};
use store::{Maintenance, Writer, conformance};
use store_local::backup::{BackupTarget, ReceiveOptions};
use store_local::{LocalStore, Options, RealDisk};

fn main() {
    let dir: PathBuf = std::env::args().nth(1).expect("name the directory to write").into();
    let options = Options { preallocate: false, ..Options::default() };
    let (store, _) = LocalStore::open(Arc::new(RealDisk), &dir, options).unwrap();
    fill(&store, 0..3);
    metrics(&store, 0..3);
    numbers(&store, 0..3);
    store.flush().unwrap();
    fill(&store, 2..5);
    metrics(&store, 3..5);
    numbers(&store, 2..5);
    dropped(&store);
    deleted(&store);
    if let Some(backup) = std::env::args().nth(2) {
        back_up(&store, &PathBuf::from(backup));
    }
    store.close().unwrap();
    drop(store);
    std::fs::remove_file(dir.join("LOCK")).unwrap();
}

fn back_up(store: &LocalStore, dir: &Path) {
    let text = b"a registry".as_slice();
    let extra =
        Extra { path: "registry".into(), bytes: text.len() as u64, content: Box::new(text), known: None };
    let target = BackupTarget::open(&RealDisk, dir, None).unwrap();
    let mut stream = Vec::new();
    let files = store.files().unwrap();
    write_stream(&*files, vec![extra], &target.have(), 1_700_000_000_000_000, &mut stream).unwrap();
    let mut go_on = |_, _| ControlFlow::Continue(());
    let total = stream.len() as u64;
    target.receive(&mut stream.as_slice(), ReceiveOptions::default(), total, &mut go_on).unwrap();
}

/// Two series, every type, a sibling column, a key that looks like the time, days apart.
fn fill(store: &LocalStore, rounds: std::ops::Range<i64>) {
    let van =
        store.series(&SeriesKey::new("telemetry", &[("device", "van1"), ("site", "köln")]).unwrap()).unwrap();
    let bus = store.series(&SeriesKey::device("telemetry", "bus").unwrap()).unwrap();
    let mut batch = Batch::new();
    let mut builder = batch.builder();
    for round in rounds {
        builder.field("speed", ValueRef::F64(50.0 + round as f64 / 2.0));
        builder.field("rpm", ValueRef::I64(1_500 - round));
        builder.field("ok", ValueRef::Bool(round % 2 == 0));
        builder.field("ts", ValueRef::String("not the time"));
        builder.row(van, Timestamp::from_micros(1_700_000_000_000_000 + round * 40_000_000_000));
        builder.field("speed", ValueRef::String("fast"));
        builder.field("place", ValueRef::Json(r#"{"lat":50.9,"lon":6.9}"#));
        builder.row(bus, Timestamp::from_micros(round));
    }
    builder.finish();
    store.append(&batch, Durability::Memory).unwrap();
}

/// Tables with one number, one of which later gets a text too.
fn metrics(store: &LocalStore, rounds: std::ops::Range<i64>) {
    for (table, host) in [("sys.cpu", "web1"), ("sys.cpu", "web2"), ("sys.load", "web1"), ("third", "web1")] {
        let series = store.series(&SeriesKey::new(table, &[("host", host)]).unwrap()).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for round in rounds.clone() {
            let divisor = if table == "third" { 3.0 } else { 4.0 };
            builder.field("value", ValueRef::F64(round as f64 / divisor));
            if table == "sys.load" && round > 2 {
                builder.field("note", ValueRef::String("busy"));
            }
            builder.row(series, Timestamp::from_micros(1_700_000_000_000_000 + round * 10_000_000));
        }
        builder.finish();
        store.append(&batch, Durability::Memory).unwrap();
    }
}

/// A key that is dropped and comes again with another type.
fn dropped(store: &LocalStore) {
    let series = store.series(&SeriesKey::device("dropped", "probe").unwrap()).unwrap();
    for (ts, value) in [(1, ValueRef::String("12")), (2, ValueRef::F64(1.5))] {
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        builder.field("speed", value);
        builder.row(series, Timestamp::from_micros(ts));
        builder.finish();
        store.append(&batch, Durability::Memory).unwrap();
        if ts == 1 {
            store.flush().unwrap();
            assert!(store.drop_key(&conformance::table("dropped"), "speed").unwrap());
        }
    }
}

/// Rows, values and series that are deleted, before a flush and after it, and a table that is dropped and comes again.
fn deleted(store: &LocalStore) {
    let series = |table: &str, device: &str| {
        let series = store.series(&SeriesKey::device(table, device).unwrap()).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for ts in 0..4 {
            builder.field("a", ValueRef::I64(ts));
            builder.field("b", ValueRef::Bool(true));
            builder.row(series, Timestamp::from_micros(ts));
        }
        builder.finish();
        store.append(&batch, Durability::Memory).unwrap();
        series
    };
    let delete = |series, (start, end), keys: Option<&str>| {
        let range = TimeRange::new(Timestamp::from_micros(start), Timestamp::from_micros(end));
        let keys = keys.map(|key| vec![key.to_owned()]);
        let deletion = Deletion { keys, ..Deletion::of_series(series, range).unwrap() };
        store.delete_rows(&deletion, Durability::Memory).unwrap();
    };
    let probe = series("deleted", "probe");
    let gone = series("deleted", "gone");
    series("dropped table", "probe");
    store.flush().unwrap();
    delete(probe, (0, 1), None);
    store.delete_series(&SeriesSet::from_iter([gone.0 as u32]), Durability::Memory).unwrap();
    assert!(store.drop_table(&conformance::table("dropped table")).unwrap());
    store.flush().unwrap();
    delete(probe, (1, 2), Some("a"));
    series("deleted", "gone");
}

/// Keys that come as integers and as floats: which kind comes first, and a text before both, make columns of other names.
fn numbers(store: &LocalStore, rounds: std::ops::Range<i64>) {
    let series = store.series(&SeriesKey::device("numbers", "probe").unwrap()).unwrap();
    let mut batch = Batch::new();
    let mut builder = batch.builder();
    let number = |is_float: bool, n: i64| match is_float {
        true => ValueRef::F64(n as f64 + 0.5),
        false => ValueRef::I64(9_007_199_254_740_993 + n),
    };
    for round in rounds {
        builder.field("integer_first", number(round % 2 == 1, round));
        builder.field("float_first", number(round % 2 == 0, round));
        builder
            .field("text_first", if round == 0 { ValueRef::String("n/a") } else { number(round > 2, round) });
        builder.row(series, Timestamp::from_micros(1_700_000_000_000_000 + round * 10_000_000));
    }
    builder.finish();
    store.append(&batch, Durability::Memory).unwrap();
}
