//! The wrapper `replay`: the rows of a device or a sensor of this server, again and as fast as they came, or faster.
//!
//! A row is stored with the time that it had, so after a restart the replay continues after the newest one.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use hub::caller::Caller;
use hub::history::{Aggregation, HistoryRequest, Interval, RowSink};
use hub::{Hub, Order, ValueColumn};
use model::{SeriesId, TimeRange, Timestamp, Value, ValueRef};
use tokio::time::{Instant, sleep_until};

use super::blocking::blocking;
use super::failure::Failure;
use super::sink::ElementSink;
use crate::limits::REPLAY_ROWS_AT_ONCE;

/// A row that was read.
type Row = (Timestamp, Vec<Option<Value>>);

/// Replays until the rows end. Then it waits until it is stopped.
pub(super) async fn read(name: &str, speed: u32, sink: &mut ElementSink) -> Result<(), Failure> {
    let (hub, caller, device) = (Arc::clone(sink.hub()), sink.caller().clone(), name.to_owned());
    let (series, keys) = blocking(move || find(&hub, &caller, &device)).await?;
    let mut after = sink.newest_time().await?;
    sink.connected();
    let mut pace = None;
    loop {
        let rows = rows(sink, series, &keys, after).await?;
        let Some((last, _)) = rows.last() else { break };
        after = Some(*last);
        for (ts, values) in &rows {
            let pace = pace.get_or_insert_with(|| Pace { began: Instant::now(), first: *ts, speed });
            let due = pace.due(*ts);
            if due > Instant::now() {
                sink.store(b"").await?;
                sleep_until(due).await;
            }
            let values = keys.iter().zip(values);
            let values = values.filter_map(|(key, value)| Some((key.as_str(), value.as_ref()?.as_ref())));
            if let Err(reason) = sink.element(*ts, values) {
                sink.refuse(&reason, b"");
            }
            if sink.is_full() {
                sink.store(b"").await?;
            }
        }
    }
    sink.store(b"").await?;
    std::future::pending().await
}

/// When rows are due.
struct Pace {
    began: Instant,
    first: Timestamp,
    speed: u32,
}

impl Pace {
    fn due(&self, ts: Timestamp) -> Instant {
        let us = ts.micros().saturating_sub(self.first.micros()).max(0).unsigned_abs();
        // A pause that the clock cannot hold is as long as the longest one.
        let pause = Duration::from_micros(us / u64::from(self.speed.max(1)));
        self.began.checked_add(pause).unwrap_or(self.began)
    }
}

/// The series of a device, with its keys.
fn find(hub: &Hub, caller: &Caller, name: &str) -> Result<(SeriesId, Vec<String>), Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure::while_(format_args!("cannot replay {name:?}"), error);
    let device = hub.device_by_name(caller, name).map_err(|error| fail(&error))?;
    let series = hub.find_series_of(caller, &device).map_err(|error| fail(&error))?;
    let series = series.ok_or_else(|| fail(&"it has no rows"))?;
    let latest = hub.latest(caller, series, None).map_err(|error| fail(&error))?;
    Ok((series, latest.into_iter().map(|latest| latest.key).collect()))
}

/// The next rows after a time.
async fn rows(
    sink: &ElementSink,
    series: SeriesId,
    keys: &[String],
    after: Option<Timestamp>,
) -> Result<Vec<Row>, Failure> {
    let start = after.map_or(Timestamp::MIN, |after| after.saturating_add_micros(1));
    let request = HistoryRequest {
        keys: keys.to_vec(),
        range: TimeRange::new(start, Timestamp::MAX),
        aggregation: Aggregation::None,
        interval: Interval::WholeRange,
        limit: REPLAY_ROWS_AT_ONCE,
        order: Order::Ascending,
    };
    let (hub, caller) = (Arc::clone(sink.hub()), sink.caller().clone());
    blocking(move || {
        let mut rows = Rows(Vec::new());
        let read = hub.history_rows_into(&caller, series, &request, &mut rows);
        read.map_err(|error| Failure::while_("cannot read the rows to replay", error))?;
        Ok(rows.0)
    })
    .await
}

struct Rows(Vec<Row>);

impl RowSink for Rows {
    fn rows(&mut self, times: &[i64], columns: &[Vec<ValueColumn>], rows: Range<usize>) -> ControlFlow<()> {
        for at in rows {
            let value = |columns: &Vec<ValueColumn>| {
                columns.iter().find_map(|column| column.get(at)).map(|value| value.to_owned())
            };
            self.0.push((Timestamp::from_micros(times[at]), columns.iter().map(value).collect()));
        }
        ControlFlow::Continue(())
    }

    fn row(&mut self, ts: Timestamp, values: &[Option<ValueRef<'_>>]) -> ControlFlow<()> {
        self.0.push((ts, values.iter().map(|value| value.map(|value| value.to_owned())).collect()));
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_due_as_far_apart_as_they_were_divided_by_the_speed() {
        let pace = Pace { began: Instant::now(), first: Timestamp::from_micros(5_000_000), speed: 10 };
        let due = |us| pace.due(Timestamp::from_micros(us)) - pace.began;
        assert_eq!(due(5_000_000), Duration::ZERO);
        assert_eq!(due(25_000_000), Duration::from_secs(2));
        assert_eq!(due(0), Duration::ZERO);
    }
}
