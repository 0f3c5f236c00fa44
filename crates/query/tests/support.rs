//! Stores with known content.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use model::limits::QueryLimits;
use model::{Batch, SeriesKey, Timestamp, ValueRef};
use query::{Engine, QueryError, Session};
use store::{Durability, MemoryStore, Store, Writer};
pub(crate) use testkit::fleet::{NEW_YEAR_US, fleet, put};

/// `rows` rows of each of `series` vehicles in the table `many`.
pub(crate) fn many(series: usize, rows: usize) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    for number in 0..series {
        let id = store.series(&SeriesKey::device("many", &format!("d{number}")).unwrap()).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for row in 0..rows as i64 {
            builder.field("value", ValueRef::F64(row as f64));
            builder.row(id, Timestamp::from_micros(NEW_YEAR_US + row));
        }
        builder.finish();
        store.append(&batch, Durability::Memory).unwrap();
    }
    store
}

/// A probe whose keys come as integers and as floats.
pub(crate) fn probe() -> Arc<MemoryStore> {
    use ValueRef::{Bool, F64, I64, String};
    let store = Arc::new(MemoryStore::new());
    let row = |minute, fields: &[(&str, ValueRef<'_>)]| {
        put(&*store, "telemetry", &[("device", "probe")], minute, fields);
    };
    row(
        0,
        &[
            ("speed", I64(20)),
            ("level", F64(0.5)),
            ("odo", I64(10)),
            ("serial", I64(9_007_199_254_740_993)),
            ("state", String("n/a")),
            ("label", String("20")),
        ],
    );
    row(1, &[("speed", I64(21)), ("level", F64(1.5)), ("odo", I64(20)), ("serial", F64(0.5))]);
    row(2, &[("speed", F64(20.5)), ("level", I64(3)), ("state", I64(1)), ("label", I64(20)), ("on", I64(1))]);
    row(3, &[("speed", F64(21.5)), ("level", I64(4)), ("state", F64(2.5)), ("on", Bool(true))]);
    store
}

pub(crate) fn engine(store: Arc<dyn Store>) -> Engine {
    Engine::new(store, QueryLimits { threads: 2, ..QueryLimits::default() }).unwrap()
}

pub(crate) fn user() -> Session {
    Session::new("tester")
}

/// Returns all rows as text; NULL is `NULL`.
pub(crate) fn text(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cell = |column: &arrow_array::ArrayRef| {
                if column.is_null(row) { "NULL".into() } else { array_value_to_string(column, row).unwrap() }
            };
            rows.push(batch.columns().iter().map(cell).collect());
        }
    }
    rows
}

/// Returns the rows, the values of each joined by blanks.
pub(crate) async fn rows(engine: &Engine, sql: &str) -> Vec<String> {
    let batches = run(engine, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    text(&batches).into_iter().map(|row| row.join(" ")).collect()
}

/// Returns the plan of a statement.
pub(crate) async fn plan(engine: &Engine, sql: &str) -> String {
    let explained = text(&run(engine, &format!("EXPLAIN {sql}")).await.unwrap());
    explained.into_iter().find(|row| row[0] == "physical_plan").unwrap().remove(1)
}

pub(crate) async fn run(engine: &Engine, sql: &str) -> Result<Vec<RecordBatch>, QueryError> {
    engine.run(sql, &user()).await?.collect().await
}

pub(crate) async fn refusal(engine: &Engine, sql: &str) -> QueryError {
    match run(engine, sql).await {
        Ok(batches) => panic!("{sql} gave {:?}", text(&batches)),
        Err(error) => error,
    }
}
