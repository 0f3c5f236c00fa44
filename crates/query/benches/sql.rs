//! What SQL costs beyond reading: one small statement, and many rows from a reader that costs nothing.
//!
//! `cargo bench -p query` measures; as a test each runs once.

#[path = "../tests/wrapped.rs"]
mod wrapped;

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, RunArray, StringViewArray,
    TimestampMicrosecondArray,
};
use divan::Bencher;
use divan::counter::ItemsCount;
use model::limits::QueryLimits;
use model::{Batch, SeriesKey, TimeRange, Timestamp, ValueRef};
use query::{Engine, Session};
use store::{
    BatchReader, Durability, MemoryStore, SeriesSet, SeriesVisitor, StoreError, TableColumns, TableRead,
    TableSnapshot, TagMatcher, Writer,
};
use tokio::runtime::{Builder, Runtime};
use wrapped::Wrapped;

const ROWS: usize = 10_000_000;
const BATCH_ROWS: usize = 8_192;
/// Neighbouring rows of one device.
const RUN_ROWS: i64 = 1_024;

fn main() {
    divan::main();
}

/// A table `t` (device, ts, value) with the given number of rows, all from the same few batches.
#[derive(Debug)]
struct Synthetic {
    inner: Arc<dyn TableSnapshot>,
    rows: usize,
}

struct SyntheticReader {
    batch: RecordBatch,
    rows_left: usize,
}

impl BatchReader for SyntheticReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        let rows = self.rows_left.min(self.batch.num_rows());
        self.rows_left -= rows;
        Ok((rows > 0).then(|| self.batch.slice(0, rows)))
    }
}

impl TableSnapshot for Synthetic {
    fn columns(&self) -> &TableColumns {
        self.inner.columns()
    }

    fn rows_max(&self) -> u64 {
        self.rows as u64
    }

    fn rows_within(&self, _range: TimeRange) -> u64 {
        self.rows as u64
    }

    fn time_range(&self) -> Option<TimeRange> {
        self.inner.time_range()
    }

    fn select(&self, matchers: &[TagMatcher]) -> Result<SeriesSet, StoreError> {
        self.inner.select(matchers)
    }

    fn each_series(
        &self,
        series: Option<&SeriesSet>,
        visit: &mut SeriesVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.inner.each_series(series, visit)
    }

    fn read(&self, read: &TableRead) -> Result<Vec<Box<dyn BatchReader>>, StoreError> {
        let rows = BATCH_ROWS as i64;
        let device = |run: i64| format!("device-{run}");
        let ends = (RUN_ROWS..=rows).step_by(RUN_ROWS as usize).map(|end| end as i32);
        let devices: ArrayRef = match read.tag_runs {
            true => {
                let values = StringViewArray::from_iter_values((0..rows / RUN_ROWS).map(device));
                Arc::new(RunArray::<Int32Type>::try_new(&ends.collect(), &values).expect("runs"))
            }
            false => Arc::new(StringViewArray::from_iter_values((0..rows).map(|row| device(row / RUN_ROWS)))),
        };
        let columns: [ArrayRef; 3] = [
            devices,
            Arc::new(TimestampMicrosecondArray::from_iter_values(0..rows).with_timezone("UTC")),
            Arc::new(Float64Array::from_iter_values((0..rows).map(|row| row as f64))),
        ];
        let (schema, _) = self.columns().project(read)?;
        let columns = read.columns.iter().map(|&index| Arc::clone(&columns[index])).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(BATCH_ROWS));
        let batch = RecordBatch::try_new_with_options(schema, columns, &options).expect("a batch");
        let wanted = read.limit.unwrap_or(usize::MAX).min(self.rows) / read.readers_max;
        let reader =
            || Box::new(SyntheticReader { batch: batch.clone(), rows_left: wanted }) as Box<dyn BatchReader>;
        Ok((0..read.readers_max).map(|_| reader()).collect())
    }
}

fn engine(rows: usize) -> (Runtime, Engine) {
    let store = Arc::new(MemoryStore::new());
    let series = store.series(&SeriesKey::device("t", "device-1").expect("a name")).expect("a series");
    let mut batch = Batch::new();
    let mut builder = batch.builder();
    for ts in [0, 1_000_000] {
        builder.field("value", ValueRef::F64(1.0));
        builder.row(series, Timestamp::from_micros(ts));
    }
    builder.finish();
    store.append(&batch, Durability::Memory).expect("an append");
    let store = Wrapped::new(store, move |inner| Arc::new(Synthetic { inner, rows }));
    let engine = Engine::new(Arc::new(store), QueryLimits::default()).expect("threads");
    (Builder::new_current_thread().build().expect("a runtime"), engine)
}

fn run((runtime, engine): &(Runtime, Engine), sql: &str) -> usize {
    let session = Session::new("bench");
    let answer = runtime.block_on(async { engine.run(sql, &session).await?.collect().await });
    answer.expect("an answer").iter().map(RecordBatch::num_rows).sum()
}

/// One device, the newest hundred rows: a typical statement of a dashboard. From the second run on, the plan is cached.
#[divan::bench(args = [
    "SELECT 1",
    "SELECT ts, value FROM t WHERE device = 'device-1' ORDER BY ts DESC LIMIT 100",
    "SELECT ts, value FROM t WHERE device = 'device-1' AND ts > now() - INTERVAL '1 hour' ORDER BY ts DESC LIMIT 100",
    "SELECT time_bucket('1 minute', ts) AS m, avg(value) FROM t WHERE device = 'device-1' GROUP BY m ORDER BY m",
])]
fn small(bencher: Bencher, sql: &str) {
    let engine = engine(1_000);
    bencher.bench(|| run(&engine, sql));
}

/// As above, but each time with a new text, so that nothing is cached.
#[divan::bench]
fn small_and_new(bencher: Bencher) {
    let engine = engine(1_000);
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        run(
            &engine,
            &format!(
                "SELECT ts, value, {number} FROM t WHERE device = 'device-1' ORDER BY ts DESC LIMIT 100"
            ),
        )
    });
}

/// Rows per second over all cores.
#[divan::bench(args = [
    "SELECT count(*) FROM t",
    "SELECT avg(value) FROM t",
    "SELECT count(*), avg(value), min(value), max(value) FROM t WHERE value > 100",
    "SELECT device, avg(value) FROM t GROUP BY device",
    "SELECT time_bucket('1 second', ts), avg(value) FROM t GROUP BY 1",
], sample_count = 10)]
fn many_rows(bencher: Bencher, sql: &str) {
    let engine = engine(ROWS);
    bencher.counter(ItemsCount::new(ROWS)).bench(|| run(&engine, sql));
}
