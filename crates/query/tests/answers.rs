//! How the rows of an answer arrive, and how a failing store affects a query.

use std::sync::Arc;

use arrow_array::RecordBatch;
use model::TimeRange;
use query::QueryError;
use store::{
    BatchReader, Blame, SeriesSet, SeriesVisitor, StoreError, TableColumns, TableRead, TableSnapshot,
    TagMatcher,
};

use crate::support::{engine, many, refusal, rows, user};
use crate::wrapped::Wrapped;

#[tokio::test]
async fn batches_have_the_configured_size() {
    let engine = engine(many(3, 10_000));
    let mut answer = engine.run("SELECT device, value FROM many", &user()).await.unwrap();
    assert_eq!(answer.schema.fields().len(), 2);
    let mut count = 0;
    while let Some(batch) = answer.batches.next().await {
        let rows = batch.unwrap().num_rows();
        assert!((1..=8_192).contains(&rows), "{rows}");
        count += rows;
    }
    assert_eq!(count, 30_000);
    assert!(answer.batches.next().await.is_none());
}

#[tokio::test]
async fn several_readers_give_each_row_once() {
    let engine = engine(many(8, 20_000));
    let sql =
        "SELECT count(*), count(DISTINCT device), sum(value), min(ts) = TIMESTAMPTZ '2026-01-01' FROM many";
    assert_eq!(rows(&engine, sql).await, ["160000 8 1599920000.0 true"]);
    let newest = "SELECT value, device FROM many ORDER BY ts DESC, device LIMIT 2";
    assert_eq!(rows(&engine, newest).await, ["19999.0 d0", "19999.0 d1"]);
    assert_eq!(rows(&engine, "SELECT count(*) FROM (SELECT value FROM many LIMIT 70000)").await, ["70000"]);
    let twice = "SELECT count(*) FROM many a JOIN many b ON a.device = b.device AND a.ts = b.ts";
    assert_eq!(rows(&engine, twice).await, ["160000"]);
}

#[tokio::test]
async fn errors_of_the_store_pass_unchanged() {
    let engine = engine(Arc::new(Wrapped::new(many(1, 10), |table| Arc::new(BrokenTable(table)))));
    let error = refusal(&engine, "SELECT avg(value) FROM many").await;
    assert!(matches!(&error, QueryError::Store(StoreError::Sealed { .. })), "{error:?}");
    assert_eq!((error.blame(), error.sql_state()), (Blame::Operator, "58000"));
    // The engine answers a query that needs no rows.
    assert_eq!(rows(&engine, "SELECT 1").await, ["1"]);
}

/// A table that is visible but cannot be read.
#[derive(Debug)]
struct BrokenTable(Arc<dyn TableSnapshot>);

struct BrokenReader;

impl BatchReader for BrokenReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        Err(StoreError::Sealed { cause: "a test".into() })
    }
}

impl TableSnapshot for BrokenTable {
    fn columns(&self) -> &TableColumns {
        self.0.columns()
    }

    fn rows_max(&self) -> u64 {
        self.0.rows_max()
    }

    fn rows_within(&self, range: TimeRange) -> u64 {
        self.0.rows_within(range)
    }

    fn time_range(&self) -> Option<TimeRange> {
        self.0.time_range()
    }

    fn select(&self, matchers: &[TagMatcher]) -> Result<SeriesSet, StoreError> {
        self.0.select(matchers)
    }

    fn each_series(
        &self,
        series: Option<&SeriesSet>,
        visit: &mut SeriesVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.0.each_series(series, visit)
    }

    fn read(&self, _read: &TableRead) -> Result<Vec<Box<dyn BatchReader>>, StoreError> {
        Ok(vec![Box::new(BrokenReader)])
    }
}
