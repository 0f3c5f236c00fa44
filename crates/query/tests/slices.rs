//! The newest and the oldest rows of many series, which the engine finds without reading the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::RecordBatch;
use model::limits::QueryLimits;
use model::{Batch, SeriesKey, TimeRange, Timestamp, ValueRef};
use query::{Engine, QueryError};
use store::{
    BatchReader, Durability, SeriesSet, SeriesVisitor, Store, StoreError, TableColumns, TableRead,
    TableSnapshot, TagMatcher,
};

use crate::limits::until;
use crate::support::{NEW_YEAR_US, engine, many, plan, refusal, rows, run, text, user};
use crate::wrapped::Wrapped;

/// More series than the store merges by time.
const VEHICLES: i64 = 300;
const ROWS: i64 = 1_000;
const STEP_US: i64 = 10_000_000;

/// All vehicles report at the same moments, except the last hundred. The last one has a clock that is decades ahead.
fn fill(store: &dyn Store, pause: &dyn Fn()) {
    for part in 0..4 {
        for number in 0..VEHICLES {
            let tags =
                [("device", format!("d{number}")), ("line", ["M1", "M2"][number as usize % 2].to_owned())];
            let tags: Vec<_> = tags.iter().map(|(tag, value)| (*tag, value.as_str())).collect();
            let id = store.series(&SeriesKey::new("vehicles", &tags).unwrap()).unwrap();
            let mut batch = Batch::new();
            let mut builder = batch.builder();
            for step in part * ROWS / 4..(part + 1) * ROWS / 4 {
                builder.field("speed", ValueRef::F64((step * 7 % 1_000) as f64 + number as f64 / 1_000.0));
                let late = if number >= 200 { number } else { 0 };
                builder.row(id, Timestamp::from_micros(NEW_YEAR_US + step * STEP_US + late));
            }
            if part == 3 && number == VEHICLES - 1 {
                builder.field("speed", ValueRef::F64(-1.0));
                builder.row(id, Timestamp::from_micros(NEW_YEAR_US + 3_000_000_000 * 1_000_000));
            }
            builder.finish();
            store.append(&batch, Durability::Memory).unwrap();
        }
        pause();
    }
}

/// Compares the rows of a statement with a limit with those of the statement without it.
async fn compare(engine: &Engine, what: &str, order: &str, limit: usize, offset: usize, first: Option<&str>) {
    let all = format!("SELECT {what} ORDER BY {order}");
    let some = format!("{all} LIMIT {limit} OFFSET {offset}");
    let plan = plan(engine, &some).await;
    match first {
        Some(first) => assert!(plan.contains(&format!("first={first}")), "{some}: {plan}"),
        None => assert!(!plan.contains("first="), "{some}: {plan}"),
    }
    let expected: Vec<_> = rows(engine, &all).await.into_iter().skip(offset).take(limit).collect();
    for time in 1..=2 {
        assert_eq!(rows(engine, &some).await, expected, "{time}: {some}");
    }
}

async fn compare_all(engine: &Engine) {
    let newest = Some("newest");
    let all = "ts, device, speed FROM vehicles";
    compare(engine, all, "ts DESC, device", 10, 0, newest).await;
    compare(engine, all, "ts DESC, device", 1_000, 777, newest).await;
    compare(engine, all, "ts DESC, speed DESC", 10_000, 0, newest).await;
    compare(engine, all, "ts, device DESC", 301, 5, Some("oldest")).await;
    // More rows than the table has.
    compare(engine, all, "ts, device", 400_000, 299_990, Some("oldest")).await;
    compare(engine, all, "device, ts DESC", 10, 0, None).await;
    compare(engine, "ts FROM vehicles", "ts DESC", 700, 0, newest).await;
    compare(
        engine,
        "ts, device FROM vehicles WHERE line = 'M2' AND ts < '2026-01-01T02:00:00Z'",
        "ts DESC, device",
        20,
        0,
        newest,
    )
    .await;
    // Only rows far from the end, only one row, and none.
    for condition in
        ["speed < 7 AND ts < now() - INTERVAL '1 second'", "speed = 0.123", "speed = -1", "speed > 2000"]
    {
        let what = format!("device, ts, speed FROM vehicles WHERE {condition}");
        compare(engine, &what, "ts DESC, speed", 30, 0, newest).await;
    }
    let renamed =
        "at, upper(name) FROM (SELECT ts AS at, device AS name, speed FROM vehicles) WHERE speed > 500";
    compare(engine, renamed, "at DESC, upper(name)", 25, 0, newest).await;
    // An expression of the time is not the time.
    compare(engine, "ts, device FROM vehicles", "date_trunc('day', ts) DESC, ts DESC, device", 5, 0, None)
        .await;
    let counted = "line, count(*), sum(speed) FROM (SELECT * FROM vehicles ORDER BY ts DESC, device LIMIT 5000) \
                   GROUP BY line";
    compare(engine, counted, "line", 2, 0, newest).await;
    let both = "a.ts, a.device, b.device FROM vehicles a JOIN vehicles b ON a.ts = b.ts \
                WHERE a.device = 'd250' AND b.line = 'M1'";
    compare(engine, both, "a.ts DESC, b.device", 5, 0, None).await;
}

#[tokio::test]
async fn the_newest_and_the_oldest_rows_are_found_in_parts_and_in_memory() {
    let store = testkit::parts::store_without_merges();
    let pauses = std::cell::Cell::new(0);
    fill(&*store, &|| {
        // The newest rows stay in memory.
        if pauses.replace(pauses.get() + 1) < 3 {
            store.flush().unwrap();
        }
    });
    compare_all(&engine(store)).await;
}

#[tokio::test]
async fn most_rows_are_not_read() {
    let store = testkit::parts::store_without_merges();
    fill(&*store, &|| store.flush().unwrap());
    let engine = engine(store);
    let sql = "SELECT ts, device, speed FROM vehicles WHERE speed >= 0 ORDER BY ts DESC LIMIT 10";
    let analyzed = text(&run(&engine, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap())[0].remove(1);
    let scan = analyzed.lines().find(|line| line.contains("StoreScan")).unwrap();
    let (_, after) = scan.split_once("output_rows=").unwrap();
    let shown = after.split([',', ']']).next().unwrap();
    let read: f64 = match shown.strip_suffix(" K") {
        Some(thousands) => thousands.parse::<f64>().unwrap() * 1_000.0,
        None => shown.parse().unwrap(),
    };
    let all = (VEHICLES * ROWS) as f64;
    assert!(10.0 <= read && read < all / 2.0, "{read} of {all}: {scan}");
}

/// The time limit of a wait.
const PATIENCE: Duration = Duration::from_secs(60);
/// A condition that no row satisfies, so every slice is read.
const OF_NOBODY: &str = "SELECT ts, value FROM many WHERE value < 0 ORDER BY ts DESC LIMIT 5";

/// A table with one reader for each slice, fewer than there are threads.
#[derive(Debug)]
struct Troubled {
    inner: Arc<dyn TableSnapshot>,
    opened: Arc<AtomicUsize>,
    trouble: Trouble,
}

/// How the second slice behaves.
#[derive(Debug, Clone)]
enum Trouble {
    None,
    DoesNotOpen,
    Breaks,
    /// Waits until the test continues it.
    StandsStill(Arc<AtomicBool>),
}

struct TroubledReader {
    inner: Box<dyn BatchReader>,
    trouble: Trouble,
}

impl TableSnapshot for Troubled {
    fn columns(&self) -> &TableColumns {
        self.inner.columns()
    }

    fn rows_max(&self) -> u64 {
        self.inner.rows_max()
    }

    fn rows_within(&self, range: TimeRange) -> u64 {
        self.inner.rows_within(range)
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
        let is_second = self.opened.fetch_add(1, Ordering::SeqCst) == 1;
        if is_second && matches!(self.trouble, Trouble::DoesNotOpen) {
            return Err(StoreError::Sealed { cause: "a test".into() });
        }
        let trouble = if is_second { self.trouble.clone() } else { Trouble::None };
        let wrap =
            |inner| Box::new(TroubledReader { inner, trouble: trouble.clone() }) as Box<dyn BatchReader>;
        let readers: Vec<_> = self.inner.read(read)?.into_iter().map(wrap).collect();
        assert_eq!(readers.len(), 1);
        Ok(readers)
    }
}

impl BatchReader for TroubledReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        match &self.trouble {
            Trouble::None | Trouble::DoesNotOpen => {}
            Trouble::Breaks => return Err(StoreError::Sealed { cause: "a test".into() }),
            Trouble::StandsStill(goes_on) => {
                while !goes_on.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
        self.inner.next()
    }
}

/// An engine of four threads over 300,000 rows, and the number of slices that it has opened.
fn troubled(trouble: &Trouble) -> (Engine, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let (counter, trouble) = (Arc::clone(&opened), trouble.clone());
    let store = Wrapped::new(many(VEHICLES as usize, ROWS as usize), move |inner| {
        Arc::new(Troubled { inner, opened: Arc::clone(&counter), trouble: trouble.clone() })
    });
    let limits = QueryLimits { threads: 4, ..QueryLimits::default() };
    (Engine::new(Arc::new(store), limits).unwrap(), opened)
}

#[tokio::test]
async fn no_slice_is_opened_before_all_rows_of_the_one_before_are_seen() {
    let (engine, opened) = troubled(&Trouble::None);
    let newest = "SELECT device, value FROM many WHERE value >= 0 ORDER BY ts DESC, device LIMIT 2";
    assert_eq!(rows(&engine, newest).await, ["d0 999.0", "d1 999.0"]);
    assert_eq!(opened.load(Ordering::SeqCst), 1);
    assert_eq!(rows(&engine, OF_NOBODY).await, Vec::<String>::new());
    assert_eq!(opened.load(Ordering::SeqCst), 3, "two slices more hold all rows");
}

#[tokio::test]
async fn a_slice_that_cannot_be_read_ends_the_query_with_its_cause() {
    for trouble in [Trouble::DoesNotOpen, Trouble::Breaks] {
        let (engine, _) = troubled(&trouble);
        let error = tokio::time::timeout(PATIENCE, refusal(&engine, OF_NOBODY)).await.unwrap();
        assert!(matches!(&error, QueryError::Store(StoreError::Sealed { .. })), "{trouble:?}: {error:?}");
        until("it has ended", || engine.status().running == 0).await;
    }
}

#[tokio::test]
async fn a_dropped_query_ends_while_threads_wait_for_a_slice() {
    let goes_on = Arc::new(AtomicBool::new(false));
    let (engine, opened) = troubled(&Trouble::StandsStill(Arc::clone(&goes_on)));
    let answer = engine.run(OF_NOBODY, &user()).await.unwrap();
    until("the second slice is open", || opened.load(Ordering::SeqCst) == 2).await;
    drop(answer);
    until("it has ended", || engine.status().running == 0).await;
    goes_on.store(true, Ordering::SeqCst);
    // The other threads are free.
    let next = tokio::time::timeout(PATIENCE, rows(&engine, "SELECT count(*) FROM many")).await.unwrap();
    assert_eq!(next, ["300000"]);
}
