//! Reads of long texts: they decode some rows at a time, and give each row once.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use model::{SeriesKey, Value};
use store::conformance::{batch_of, collect, read_all, scan_all, table};
use store::{Durability, Order, ReadOrder, Reader, TableRead, Writer};
use store_local::{LocalStore, Options};
use testkit::FaultyDisk;

use crate::support::{open, tiny_manual};

const TEXT_BYTES: usize = 5_000;
const SERIES: usize = 3;
/// Parts overlap, and their decoded pages are more than a read keeps.
const FLUSHES: i64 = 50;
const ROWS_PER_FLUSH: i64 = 6;
/// Bytes of a batch: four blocks of 64 KiB, the last one begun.
const BATCH_BYTES_MAX: usize = 6 * 64 * 1024;

fn text(series: usize, ts: i64, version: usize) -> String {
    format!("{:0TEXT_BYTES$}", ts as usize * 100 + series * 10 + version)
}

/// Rows by series and time.
type Rows = BTreeMap<(usize, i64), String>;

/// Writes rows of all series to parts that overlap, some rows twice, and further rows to memory.
fn write(store: &LocalStore) -> Rows {
    let mut rows = Rows::new();
    for flush in 0..=FLUSHES {
        for series in 0..SERIES {
            let id = store.series(&SeriesKey::device("t", &format!("d{series}")).unwrap()).unwrap();
            // The last rows stay in memory, and are more than one block there.
            let count = if flush == FLUSHES { 10 * ROWS_PER_FLUSH } else { ROWS_PER_FLUSH };
            for n in 0..count {
                // Every part has rows of the whole time, and every other one writes a row of the part before again.
                let ts = if n == 0 { flush - flush % 2 } else { n * 1_000 + flush };
                let text = text(series, ts, flush as usize % 10);
                let fields = [("n", Value::I64(ts)), ("text", Value::String(text.clone()))];
                store.append(&batch_of(id, &[(ts, &fields)]), Durability::Memory).unwrap();
                rows.insert((series, ts), text);
            }
        }
        if flush < FLUSHES {
            store.flush().unwrap();
        }
    }
    rows
}

fn rows_of(batch: &RecordBatch, found: &mut Vec<((usize, i64), String)>) {
    let (device, text) = (batch.column(0).as_string_view(), batch.column(2).as_string_view());
    let times = batch.column(1).as_primitive::<TimestampMicrosecondType>();
    for row in 0..batch.num_rows() {
        let series = device.value(row).trim_start_matches('d').parse().unwrap();
        found.push(((series, times.value(row)), text.value(row).to_owned()));
    }
}

#[test]
fn batches_of_long_texts_are_small_and_have_every_row_once() {
    let options = Options { row_group_bytes: 256 * 1024, array_cache_bytes_max: 0, ..tiny_manual() };
    let options = Options { row_group_rows: 1 << 16, page_rows: 8_192, chunk_rows: 1 << 16, ..options };
    let (store, _) = open(&FaultyDisk::new(), options).unwrap();
    let expected: Vec<_> = write(&store).into_iter().collect();
    let snapshot = store.snapshot(&table("t")).unwrap().unwrap();
    assert!((TEXT_BYTES as u64..2 * TEXT_BYTES as u64).contains(&snapshot.row_bytes()));
    for order in [ReadOrder::Any, ReadOrder::SeriesThenTime, ReadOrder::Time(Order::Descending)] {
        let columns = vec![0, 1, 3];
        let read = TableRead { columns, order, batch_rows: 8_192, ..read_all(snapshot.as_ref()) };
        let mut found = Vec::new();
        for mut reader in snapshot.read(&read).unwrap() {
            while let Some(batch) = reader.next().unwrap() {
                let bytes = batch.get_array_memory_size();
                assert!(bytes < BATCH_BYTES_MAX, "{} rows of {bytes} bytes", batch.num_rows());
                rows_of(&batch, &mut found);
            }
        }
        if let ReadOrder::Time(_) = order {
            assert!(found.is_sorted_by_key(|((_, ts), _)| -ts));
        }
        found.sort();
        assert!(found == expected, "{order:?}: {} of {} rows", found.len(), expected.len());
    }
    let id = store.series(&SeriesKey::device("t", "d1").unwrap()).unwrap();
    let history: Vec<_> = collect(&store, &scan_all(id, &["text"])).unwrap();
    let of_series = expected.iter().filter(|((series, _), _)| *series == 1);
    let of_series = of_series.map(|((_, ts), text)| (*ts, vec![Some(Value::String(text.clone()))]));
    assert!(history == of_series.collect::<Vec<_>>());
}
