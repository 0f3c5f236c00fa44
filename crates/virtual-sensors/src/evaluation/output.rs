//! Rows of the output on their way into the store.

use std::collections::VecDeque;

use hub::ThreadEnd;
use hub::clock::system_now;
use model::limits::IngestLimits;
use model::{Batch, SeriesId, TimeRange, Timestamp, ValueRef};
use sensors::virtual_sensors::{Datum, OutputRow, Plan};
use store::{Durability, Outcome, StoreError, Ticket};

use super::destination::Destination;
use super::durable;
use super::record::LastRow;
use crate::host::Host;
use crate::limits::{ROWS_OF_ONE_TIME_MAX, ROWS_PER_APPEND_MAX};

/// The rows that wait for their append, and what was not stored.
#[derive(Debug, Default)]
pub(super) struct Output {
    batch: Batch,
    /// The last row, by which the next one of its time finds its place.
    pub(super) last: Option<LastRow>,
    /// Whether the rows are made of rows that the store gives, and not of durable ones of the tap.
    pub(super) is_rereading: bool,
    /// Appends that were not durable when they were looked at. The store is busy before they are many.
    undurable: VecDeque<Ticket>,
    /// Rows that were appended.
    pub(super) appended: u64,
    /// Rows that were not stored.
    pub(super) refused: u64,
    /// Why the last one was not stored.
    pub(super) fault: Option<String>,
}

impl Output {
    /// Continues after a row.
    pub(super) fn after(last: Option<LastRow>) -> Self {
        Self { last, ..Self::default() }
    }

    /// Adds rows, and appends them if they are many.
    pub(super) fn add(
        &mut self,
        host: &Host,
        destination: &mut Destination,
        plan: &Plan,
        rows: &mut Vec<OutputRow>,
    ) -> Result<(), ThreadEnd> {
        if rows.is_empty() {
            return Ok(());
        }
        let plausible = host.hub.limits().plausible(system_now());
        for row in rows.drain(..) {
            if let Err(reason) = self.add_row(&row, plan, destination.series, (plausible, host.hub.limits()))
            {
                self.refuse(1, reason);
            }
            if self.batch.len() >= ROWS_PER_APPEND_MAX || self.batch.is_full() {
                self.flush(host, destination)?;
            }
        }
        Ok(())
    }

    fn add_row(
        &mut self,
        row: &OutputRow,
        plan: &Plan,
        series: SeriesId,
        (plausible, limits): (TimeRange, &IngestLimits),
    ) -> Result<(), String> {
        let ts = self.time(row.timed, plan.unique_timestamps)?;
        if !plausible.contains(ts) {
            return Err(format!(
                "the time {} is before ingest.oldest or more than {} s in the future (ingest.future_max_s)",
                row.timed, limits.future_max_s
            ));
        }
        let text_max = limits.text_value_bytes_max;
        let is_long = |datum: &Datum| matches!(datum, Datum::Text(text) if text.len() > text_max);
        if row.values.iter().any(is_long) {
            return Err(format!("a text has more than {text_max} bytes (ingest.text_value_bytes_max)"));
        }
        let mut builder = self.batch.builder();
        for (field, datum) in plan.output.iter().zip(&row.values) {
            if let Some(value) = value(datum) {
                builder.field(&field.name.value, value);
            }
        }
        if builder.open_fields() == 0 {
            return Err("no field of the row has a value".to_owned());
        }
        builder.row(series, ts);
        builder.finish();
        Ok(())
    }

    /// The time of a row. Rows of one time that follow each other are a microsecond apart, so a row that is computed again has the
    /// time that it had.
    fn time(&mut self, ms: i64, unique: bool) -> Result<Timestamp, String> {
        let place = match self.last {
            Some(last) if last.ms == ms && !unique => last.place + 1,
            _ => 0,
        };
        if place >= ROWS_OF_ONE_TIME_MAX {
            return Err(format!(
                "more than {ROWS_OF_ONE_TIME_MAX} rows have the time {ms} (ROWS_OF_ONE_TIME_MAX)"
            ));
        }
        self.last = Some(LastRow { ms, place });
        let time = Timestamp::from_millis(ms).map(|time| time.saturating_add_micros(place));
        time.ok_or_else(|| format!("the time {ms} is out of range"))
    }

    fn tell_followers(&self, host: &Host, destination: &Destination) {
        let times = || self.batch.rows().map(|row| row.ts().micros());
        if let (Some(first_us), Some(last_us)) = (times().min(), times().max()) {
            let rows = self.batch.len() as u64;
            host.sensors.followers.appended(&destination.device.name, (first_us, last_us), rows);
        }
    }

    fn refuse(&mut self, rows: u64, reason: String) {
        self.refused += rows;
        self.fault = Some(reason);
    }

    /// Appends the rows.
    pub(super) fn flush(&mut self, host: &Host, destination: &mut Destination) -> Result<(), ThreadEnd> {
        if self.batch.is_empty() {
            return Ok(());
        }
        if self.is_rereading {
            // A read also finds rows that are not durable yet.
            durable::wait_for(host, Ticket::after(host.store.progress().appended))?;
        }
        let mut appended = durable::append(host, &self.batch)?;
        if appended.as_ref().is_err_and(StoreError::is_unknown_series) {
            // Somebody has deleted the series.
            destination.find_again(host).map_err(ThreadEnd::failed)?;
            self.batch = moved(&self.batch, destination.series);
            appended = durable::append(host, &self.batch)?;
        }
        match appended {
            Ok(ticket) => {
                self.undurable.push_back(ticket);
                self.appended += self.batch.len() as u64;
                self.tell_followers(host, destination);
                host.hub.device_heard(&destination.device);
            }
            Err(error) => self.refuse(self.batch.len() as u64, error.to_string()),
        }
        self.batch.clear();
        self.forget_durable(host)
    }

    /// Waits until all appended rows are durable.
    ///
    /// # Errors
    /// The store lost rows. The sensors stop without a checkpoint, so the next start computes the rows again.
    pub(super) fn wait_until_durable(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        while let Some(ticket) = self.undurable.front() {
            durable::wait_for(host, *ticket)?;
            self.undurable.pop_front();
        }
        Ok(())
    }

    fn forget_durable(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        while let Some(ticket) = self.undurable.front() {
            match host.store.outcome(*ticket, Durability::Fsync) {
                Outcome::Pending => break,
                Outcome::Failed(error) => return Err(ThreadEnd::failed(error)),
                Outcome::Kept => self.undurable.pop_front(),
            };
        }
        Ok(())
    }
}

/// The rows for another series.
fn moved(batch: &Batch, series: SeriesId) -> Batch {
    let mut to = Batch::new();
    let mut builder = to.builder();
    for row in batch.rows() {
        row.fields().for_each(|field| builder.field(field.key, field.value));
        builder.row(series, row.ts());
    }
    builder.finish();
    to
}

fn value(datum: &Datum) -> Option<ValueRef<'_>> {
    match datum {
        Datum::Null => None,
        Datum::Bool(flag) => Some(ValueRef::Bool(*flag)),
        Datum::Int(number) => Some(ValueRef::I64(*number)),
        Datum::Float(number) => Some(ValueRef::F64(*number)),
        Datum::Text(text) => Some(ValueRef::String(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_time_are_a_microsecond_apart() {
        let mut output = Output::default();
        let mut time = |ms, unique| output.time(ms, unique).map(Timestamp::micros);
        assert_eq!((time(7, false), time(7, false), time(8, false)), (Ok(7_000), Ok(7_001), Ok(8_000)));
        assert_eq!((time(9, true), time(9, true)), (Ok(9_000), Ok(9_000)));
        for place in 0..ROWS_OF_ONE_TIME_MAX {
            assert_eq!(time(10, false), Ok(10_000 + place));
        }
        assert!(time(10, false).unwrap_err().contains("ROWS_OF_ONE_TIME_MAX"));
        assert!(time(i64::MAX, false).is_err());
    }
}
