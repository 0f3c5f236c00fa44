//! A follower of the output of one sensor.

use std::ops::ControlFlow;
use std::sync::Arc;

use hub::Error;
use hub::blocking_append::wait_durable;
use model::{SeriesKey, TimeRange, Timestamp, Value};
use store::{Order, Scan, Store, StoreError, Ticket};

use crate::evaluation::keys_of;
use crate::followers::{FollowRequest, OutputRow, OutputRows};
use crate::host::Host;
use crate::info::FollowerReport;
use crate::limits::{FOLLOWER_BYTES_AT_ONCE, FOLLOWER_COUNT_MAX};

/// A follower of the output of one sensor. Its methods read and write files: call them on a thread that may block.
#[derive(Debug)]
pub struct OutputFollower {
    host: Arc<Host>,
    request: FollowRequest,
    series: SeriesKey,
    fields: Vec<String>,
}

impl OutputFollower {
    pub(super) fn new(
        host: Arc<Host>,
        request: FollowRequest,
        series: SeriesKey,
        fields: Vec<String>,
    ) -> Self {
        Self { host, request, series, fields }
    }

    /// The next rows to deliver, at most this many; none if all were delivered. The rows are durable.
    ///
    /// # Errors
    /// The store fails.
    pub fn next(&self, rows_max: usize) -> Result<OutputRows, Error> {
        loop {
            let Some((from_us, to_us)) = self.host.sensors.followers.begin_read(&self.request) else {
                return Ok(OutputRows { rows: Vec::new(), from_us: 0, to_us: 0 });
            };
            let (rows, is_whole) = self.read(from_us, to_us, rows_max.max(1))?;
            let is_again = to_us < i64::MAX;
            let read_to_us = match rows.last() {
                Some(last) if !(is_whole && is_again) => last.us,
                _ => to_us,
            };
            let found = OutputRows { rows, from_us, to_us: read_to_us };
            if !found.rows.is_empty() {
                wait_durable(&*self.host.store, Ticket::after(self.host.store.progress().appended))?;
                return Ok(found);
            }
            if !is_again {
                self.host.sensors.followers.reached_end(&self.request);
                return Ok(found);
            }
            // The rows of the range were deleted.
            self.delivered(&found)?;
        }
    }

    /// The outside has taken these rows.
    ///
    /// # Errors
    /// The key-value store is busy or fails. Then the rows come again.
    pub fn delivered(&self, rows: &OutputRows) -> Result<(), Error> {
        Ok(self.host.sensors.followers.delivered(&*self.host.kv, &self.request, rows)?)
    }

    /// Waits until rows were appended since the last read began; forever if the sensor does not have the follower any more.
    pub async fn appended(&self) {
        match self.host.sensors.followers.wake(&self.request) {
            Some(wake) => wake.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Shows callers what the follower does.
    pub fn report(&self, report: FollowerReport) {
        if let Some(info) = self.host.sensors.followers.report(&self.request, report) {
            self.host.sensors.metrics.followers.set(&self.request.sensor, &info);
        }
    }

    fn read(&self, from_us: i64, to_us: i64, limit: usize) -> Result<(Vec<OutputRow>, bool), StoreError> {
        let store = &*self.host.store;
        let Some(series) = store.find_series(&self.series) else { return Ok((Vec::new(), true)) };
        let keys = keys_of(store, series)?;
        let places: Vec<_> =
            self.fields.iter().map(|field| keys.iter().position(|key| key == field)).collect();
        let end = Timestamp::from_micros(to_us).saturating_add_micros(1);
        let range = TimeRange::new(Timestamp::from_micros(from_us), end);
        let scan = Scan { series, keys, range, order: Order::Ascending, limit };
        let (mut rows, mut bytes, mut is_full) = (Vec::new(), 0, false);
        let read = store.scan(&scan, &mut |row| {
            let values =
                places.iter().map(|place| place.and_then(|at| row.values[at]).map(|value| value.to_owned()));
            let values: Vec<Option<Value>> = values.collect();
            bytes += values.iter().flatten().map(bytes_of).sum::<usize>();
            rows.push(OutputRow { us: row.ts.micros(), values });
            is_full = rows.len() >= limit || bytes >= FOLLOWER_BYTES_AT_ONCE;
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match read {
            Err(StoreError::UnknownSeries(_)) => {}
            read => read?,
        }
        Ok((rows, !is_full))
    }
}

fn bytes_of(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) | Value::Json(text) => text.len(),
            Value::Bool(_) | Value::I64(_) | Value::F64(_) => 0,
        }
}

/// The rows of a series in a range. It does not count further than [`FOLLOWER_COUNT_MAX`].
pub(super) fn count(store: &dyn Store, series: &SeriesKey, range: TimeRange) -> Result<u64, StoreError> {
    let Some(series) = store.find_series(series) else { return Ok(0) };
    let keys = keys_of(store, series)?;
    let scan = Scan { series, keys, range, order: Order::Ascending, limit: FOLLOWER_COUNT_MAX };
    let mut rows = 0;
    let read = store.scan(&scan, &mut |_| {
        rows += 1;
        ControlFlow::Continue(())
    });
    match read {
        Err(StoreError::UnknownSeries(_)) => Ok(0),
        read => read.map(|()| rows),
    }
}
