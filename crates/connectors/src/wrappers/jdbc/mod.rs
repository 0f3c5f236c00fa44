//! The wrapper `jdbc`: the rows of a table or a query of a database are elements, in the order of their times.
//!
//! Invariants:
//! 1. The stored place moves only after the rows before it are durable.
//! 2. A row that is read again has the time that it had: the place has the number of rows of its millisecond, and rows have one order.
//! 3. A row whose time the server does not take yet stays in the database until it does. Otherwise it would hide the rows before it.

mod row_position;

use std::time::{Duration, Instant};

use hub::clock::system_now;
use tokio::time::sleep;
use virtual_sensors::{JdbcWrapper, Relation};
use xxhash_rust::xxh3::xxh3_64;

use self::row_position::RowPosition;
use super::failure::Failure;
use super::sink::ElementSink;
use super::tie_order::ElementTimes;
use crate::databases::{DatabaseError, Pools, Position, ReadRow, RowReader};
use crate::limits::PLACE_INTERVAL;

/// Reads rows until the database fails.
pub(super) async fn read(
    wrapper: &JdbcWrapper,
    pools: &Pools,
    sink: &mut ElementSink,
) -> Result<(), Failure> {
    let database = pools.get(&wrapper.options);
    let text_bytes_max = sink.hub().limits().text_value_bytes_max;
    let rows = RowReader::open(database, wrapper, text_bytes_max).await.map_err(failure)?;
    let mut reading = Reading::open(wrapper, &rows, sink).await?;
    loop {
        let page = rows.page(reading.after, until(&rows, sink)).await.map_err(failure)?;
        sink.connected();
        reading.take(&rows, &page.rows, sink).await?;
        reading.keep_place(sink, page.is_last).await?;
        if page.is_last {
            sink.report();
            sleep(Duration::from_millis(wrapper.rate_ms)).await;
        }
    }
}

/// The rows and their order: a place in other rows, or in another order of them, means nothing.
fn identity(wrapper: &JdbcWrapper) -> String {
    let mut text = format!("{} by {}", wrapper.describe(), wrapper.time_column);
    if let Some(key) = &wrapper.key_column {
        text = format!("{text}, {key}");
    }
    match &wrapper.relation {
        Relation::Table(_) => text,
        Relation::Query(query) => format!("{text}, XXH3 {:016x}", xxh3_64(query.as_bytes())),
    }
}

fn failure(error: DatabaseError) -> Failure {
    Failure::new(error.to_string())
}

/// The last time that is read now.
fn until(rows: &RowReader, sink: &ElementSink) -> i64 {
    let end = sink.hub().limits().plausible(system_now()).end;
    rows.unit().last_of_millis(end.millis().saturating_sub(1))
}

/// How far the rows are read.
struct Reading {
    place: RowPosition,
    after: Option<Position>,
    places: ElementTimes,
    kept: Option<RowPosition>,
    kept_at: Instant,
}

impl Reading {
    async fn open(wrapper: &JdbcWrapper, rows: &RowReader, sink: &mut ElementSink) -> Result<Self, Failure> {
        let beginning = RowPosition::beginning(identity(wrapper), rows.unit());
        let stored = sink.stored_place().await?.and_then(|bytes| RowPosition::decode(&bytes));
        // The numbers of another table, or of times in another unit, mean nothing here.
        let kept = stored.filter(|place| place.is_of_same_rows(&beginning));
        let place = kept.clone().unwrap_or(beginning);
        let start = || wrapper.start_ms.map(|ms| Position::after_time(rows.unit().last_of_millis(ms)));
        let after = place.after().or_else(start);
        let places = place.last.map_or_else(ElementTimes::default, |(ms, at)| ElementTimes::after(ms, at));
        Ok(Self { place, after, places, kept, kept_at: Instant::now() })
    }

    /// Stores rows, and moves the place behind them.
    async fn take(
        &mut self,
        reader: &RowReader,
        rows: &[ReadRow],
        sink: &mut ElementSink,
    ) -> Result<(), Failure> {
        for row in rows {
            let ms = reader.unit().millis(row.position.time);
            if let Err(reason) = self.element(reader, row, ms, sink) {
                let Position { time, key } = row.position;
                sink.refuse(&format!("a row of the time {time} with the key {key}: {reason}"), b"");
            }
            if sink.is_full() {
                sink.store(b"").await?;
                self.advance(row.position);
            }
        }
        sink.store(b"").await?;
        if let Some(last) = rows.last() {
            self.advance(last.position);
        }
        Ok(())
    }

    fn element(
        &mut self,
        reader: &RowReader,
        row: &ReadRow,
        ms: i64,
        sink: &mut ElementSink,
    ) -> Result<(), String> {
        let values = reader.names().iter().zip(&row.values);
        let values = values.filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?.as_ref())));
        // A row that is refused has a place too: whether it is refused may depend on the settings of the server.
        sink.element(self.places.next(ms)?, values)
    }

    /// The rows up to here are durable.
    fn advance(&mut self, to: Position) {
        self.after = Some(to);
        self.place.advance(to, self.places.last());
    }

    /// Stores the place, if it has moved and some time has passed or it is `now`.
    async fn keep_place(&mut self, sink: &mut ElementSink, now: bool) -> Result<(), Failure> {
        if self.kept.as_ref() == Some(&self.place) || (!now && self.kept_at.elapsed() < PLACE_INTERVAL) {
            return Ok(());
        }
        sink.keep_place(self.place.encode()).await?;
        self.kept = Some(self.place.clone());
        self.kept_at = Instant::now();
        Ok(())
    }
}
