//! Reads rows again from the store.

use std::ops::ControlFlow;

use model::{SeriesId, TimeRange, Timestamp, Value};
use sensors::alarm_rules::{KeySet, KeySource, Observed};
use store::{Order, Scan};

use super::event_loop::Engine;
use super::limits::{REREAD_BYTES_MAX, REREAD_SLACK_US, ROWS_PER_COMMIT_MAX};
use crate::thread_end::ThreadEnd;

/// A row of a device: its time and the values of the keys that rules read.
type Row = (Timestamp, Vec<(u8, Value)>);

impl Engine {
    /// Evaluates the rows of a series from the last evaluated one on.
    pub(super) fn reread_series(&mut self, series: SeriesId) -> Result<(), ThreadEnd> {
        let from = match self.by_series.get(&series).and_then(|at| self.devices[*at].as_ref()) {
            Some(device) => Timestamp::from_micros(device.row_us),
            // Its first rows found no room in the tap.
            None => {
                let Some(at) = self.adopt_series(series)? else { return Ok(()) };
                self.by_series.insert(series, at);
                let from = (self.shared.now)().saturating_add_micros(-REREAD_SLACK_US);
                self.read_before(at, series, from)?;
                from
            }
        };
        self.reread(series, from)
    }

    /// Evaluates the rows of a series from a time on, some at a time.
    pub(super) fn reread(&mut self, series: SeriesId, mut from: Timestamp) -> Result<(), ThreadEnd> {
        loop {
            let Some(at) = self.by_series.get(&series).copied() else { return Ok(()) };
            let (rows, is_last) = self.rows_from(at, series, from)?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            from = last.saturating_add_micros(1);
            let now = (self.shared.now)();
            for (ts, values) in rows {
                let mut keys = KeySet::EMPTY;
                let Some(device) = &mut self.devices[at] else { return Ok(()) };
                for (number, value) in values {
                    if device.values.put(number, ts, value.as_ref()) {
                        keys.add(number);
                    }
                }
                // The row came about when it says: durations continue from there.
                self.row_changed(at, keys, ts, ts.min(now));
            }
            self.commit()?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Rows from a time on that are durable, the oldest first, and whether they are all of them.
    fn rows_from(&self, at: usize, series: SeriesId, from: Timestamp) -> Result<(Vec<Row>, bool), ThreadEnd> {
        let Some(device) = &self.devices[at] else { return Ok((Vec::new(), true)) };
        let keys: Vec<(u8, &str)> = device.profile.keys(KeySource::TimeSeries).collect();
        let scan = Scan {
            series,
            keys: keys.iter().map(|(_, name)| (*name).to_owned()).collect(),
            range: TimeRange::new(from, Timestamp::MAX),
            order: Order::Ascending,
            limit: ROWS_PER_COMMIT_MAX,
        };
        let mut rows: Vec<Row> = Vec::new();
        let mut bytes = 0;
        let is_full =
            |rows: &[Row], bytes: usize| rows.len() >= ROWS_PER_COMMIT_MAX || bytes >= REREAD_BYTES_MAX;
        let read = self.shared.store.scan(&scan, &mut |row| {
            let values = keys.iter().zip(row.values);
            let values = values.filter_map(|((number, _), value)| Some((*number, (*value)?.to_owned())));
            let values: Vec<(u8, Value)> = values.collect();
            bytes += values.iter().map(|(_, value)| weight(value)).sum::<usize>();
            rows.push((row.ts, values));
            if is_full(&rows, bytes) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let is_last = !is_full(&rows, bytes);
        match read {
            Err(store::StoreError::UnknownSeries(_)) => return Ok((Vec::new(), true)),
            done => done.map_err(ThreadEnd::failed)?,
        }
        // A read also finds rows that are not durable yet.
        self.shared.wait_for_rows()?;
        Ok((rows, is_last))
    }

    /// Gives a new device the values from before a time.
    pub(super) fn read_before(
        &mut self,
        at: usize,
        series: SeriesId,
        before: Timestamp,
    ) -> Result<(), ThreadEnd> {
        let Some(device) = &mut self.devices[at] else { return Ok(()) };
        let profile = std::sync::Arc::clone(&device.profile);
        for (number, name) in profile.keys(KeySource::TimeSeries) {
            let scan = Scan {
                series,
                keys: vec![name.to_owned()],
                range: TimeRange::new(Timestamp::MIN, before),
                order: Order::Descending,
                limit: 1,
            };
            let mut newest = None;
            let read = self.shared.store.scan(&scan, &mut |row| {
                let value = row.values.first().copied().flatten();
                newest = value.map(|value| Observed { ts: row.ts, value: value.to_owned() });
                ControlFlow::Break(())
            });
            read.map_err(ThreadEnd::failed)?;
            if newest.is_some() {
                device.values.set(number, newest);
            }
        }
        Ok(())
    }
}

fn weight(value: &Value) -> usize {
    let text = match value {
        Value::String(text) | Value::Json(text) => text.len(),
        Value::Bool(_) | Value::I64(_) | Value::F64(_) => 0,
    };
    size_of::<(u8, Value)>() + text
}
