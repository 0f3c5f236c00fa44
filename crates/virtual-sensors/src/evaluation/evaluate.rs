//! A sensor takes rows, and its clock continues without them.

use std::sync::Arc;
use std::time::Instant;

use hub::ThreadEnd;
use model::{SeriesId, Timestamp, ValueRef};
use sensors::virtual_sensors::{Datum, OutputRow};
use store::Sequence;

use super::cursor::Arrival;
use super::running::Running;
use crate::host::Host;
use crate::limits::{SLIDES_PER_TURN_MAX, TICK_DELAY_MS};

/// The field that has the name of the device, unless the device reports a field of this name.
const DEVICE_FIELD: &str = "device";

/// A row of a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputRow<'a> {
    pub(super) series: SeriesId,
    pub(super) ts: Timestamp,
    /// The sequence of its batch; 0 for a row that was read from the store.
    pub(super) sequence: Sequence,
    /// The values with the numbers of their fields.
    pub(super) values: &'a [(u16, ValueRef<'a>)],
}

impl Running {
    /// Evaluates a row, if it is a new one of a device that the sensor reads.
    pub(super) fn take(&mut self, host: &Host, row: InputRow<'_>) -> Result<(), ThreadEnd> {
        let passed = self.passed();
        let Some(cursor) = self.cursors.get_mut(&row.series) else { return Ok(()) };
        match cursor.take(row.ts, row.sequence, passed) {
            Arrival::Element => {}
            Arrival::Known => return Ok(()),
            Arrival::OutOfOrder => {
                self.rows_out_of_order += 1;
                return Ok(());
            }
        }
        let device = Arc::clone(&cursor.device);
        let timed = row.ts.millis();
        let mut out = Vec::new();
        for at in 0..self.sources.len() {
            if self.cursors[&row.series].sources.contains(&self.sources[at].id) {
                self.element(at, timed, &device, row.values, &mut out);
            }
        }
        self.is_changed = true;
        self.newest = Some((self.newest.map_or(timed, |(newest, _)| newest.max(timed)), Instant::now()));
        self.add(host, &mut out)
    }

    fn element(
        &mut self,
        at: usize,
        timed: i64,
        device: &Arc<str>,
        values: &[(u16, ValueRef<'_>)],
        out: &mut Vec<OutputRow>,
    ) {
        let source = &self.sources[at];
        let mut field = |name: &str| source.field(name, device, values);
        // The clock is at the time of the element.
        self.sensor.element(source.id, timed, timed, &mut field, out);
    }

    /// Gives a row back to the window of a source.
    pub(super) fn fill(&mut self, at: usize, row: InputRow<'_>) {
        let Some(cursor) = self.cursors.get(&row.series) else { return };
        let (source, device) = (&self.sources[at], &cursor.device);
        let mut field = |name: &str| source.field(name, device, row.values);
        self.sensor.fill(source.id, row.ts.millis(), &mut field);
    }

    /// Makes the slides in time that are due although no element has come. The clock continues from the newest element as fast as that of
    /// the machine.
    pub(super) fn tick(&mut self, host: &Host, now: Instant) -> Result<(), ThreadEnd> {
        let Some((newest, came)) = self.newest else { return Ok(()) };
        let passed_ms = i64::try_from(now.saturating_duration_since(came).as_millis()).unwrap_or(i64::MAX);
        let delay = self.plan.lateness.unwrap_or(TICK_DELAY_MS);
        let until = newest.saturating_add(passed_ms).saturating_sub(delay);
        let mut out = Vec::new();
        if self.waits() {
            // Elements continue that waited for late ones; a late one must be very late to be left out.
            self.sensor.advance(until.min(newest), &mut out);
            self.is_changed = true;
            self.is_unseen = true;
        }
        for _ in 0..SLIDES_PER_TURN_MAX {
            let Some(deadline) = self.sensor.next_deadline().filter(|deadline| *deadline < until) else {
                break;
            };
            self.sensor.advance(deadline.saturating_add(1), &mut out);
            self.is_changed = true;
            self.is_unseen = true;
        }
        self.add(host, &mut out)
    }

    /// Whether the clock matters without an element.
    pub(super) fn needs_ticks(&self) -> bool {
        self.newest.is_some() && (self.waits() || self.sensor.next_deadline().is_some())
    }

    /// Whether elements wait for late ones.
    fn waits(&self) -> bool {
        let newest = self.newest.map(|(newest, _)| newest);
        self.plan.lateness.is_some() && self.sensor.passed() < newest
    }

    fn add(&mut self, host: &Host, out: &mut Vec<OutputRow>) -> Result<(), ThreadEnd> {
        self.output.add(host, &mut self.destination, &self.plan, out)
    }
}

impl super::running::Source {
    fn field(&self, name: &str, device: &Arc<str>, values: &[(u16, ValueRef<'_>)]) -> Datum {
        let number = self.numbers.get(name);
        match values.iter().find(|(known, _)| Some(known) == number) {
            Some((_, value)) => datum(*value),
            None if name == DEVICE_FIELD => Datum::Text(Arc::clone(device)),
            None => Datum::Null,
        }
    }
}

fn datum(value: ValueRef<'_>) -> Datum {
    match value {
        ValueRef::Bool(flag) => Datum::Bool(flag),
        ValueRef::I64(number) => Datum::Int(number),
        ValueRef::F64(number) if number.is_finite() => Datum::Float(number),
        ValueRef::F64(_) => Datum::Null,
        ValueRef::String(text) | ValueRef::Json(text) => Datum::Text(text.into()),
    }
}
