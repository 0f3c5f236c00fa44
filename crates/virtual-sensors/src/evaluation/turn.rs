//! A turn of a sensor: it evaluates what waits, for the time of its budget. Then it is the turn of the next sensor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hub::ThreadEnd;
use model::SeriesId;

use super::evaluate::InputRow;
use super::fields_read::FieldsRead;
use super::inbox::{Inbox, WaitingRow};
use super::running::Running;
use crate::host::Host;
use crate::limits::TURN_BUDGET;

/// A turn on its way to a thread.
pub(super) struct Turn {
    /// The place of the sensor.
    pub(super) at: usize,
    pub(super) running: Box<Running>,
    /// What it evaluates; nothing if its clock makes the turn.
    pub(super) inbox: Inbox,
    pub(super) host: Arc<Host>,
    pub(super) fields: Arc<FieldsRead>,
}

/// A turn that has ended.
pub(super) struct TurnDone {
    pub(super) at: usize,
    pub(super) running: Box<Running>,
    /// What it has left.
    pub(super) inbox: Inbox,
    /// How long it evaluated.
    pub(super) took: Duration,
    pub(super) end: Result<(), ThreadEnd>,
}

impl Turn {
    /// Makes the turn, on the thread that calls it.
    pub(super) fn make(self) -> TurnDone {
        let Self { at, mut running, mut inbox, host, fields } = self;
        let began = Instant::now();
        let mut end = match inbox.is_empty() {
            // What is here is complete, and can be stored.
            _ if host.sensors.ends() => Ok(()),
            true => running.tick(&host, began),
            false => running.work(&host, &fields, &mut inbox, began),
        };
        let took = began.elapsed();
        if end.is_ok() && running.sensor.was_cut() {
            // What it has computed is not complete.
            end = Err(ThreadEnd::Asked);
        }
        if end.is_ok() {
            end = running.output.flush(&host, &mut running.destination);
        }
        TurnDone { at, running, inbox, took, end }
    }
}

impl Running {
    /// Evaluates what waits, as long as its budget allows.
    fn work(
        &mut self,
        host: &Host,
        fields: &FieldsRead,
        inbox: &mut Inbox,
        began: Instant,
    ) -> Result<(), ThreadEnd> {
        while let Some(series) = inbox.to_read() {
            if let Some(series) = series {
                self.add_unknown(host, series);
            }
            if !self.evaluate_stored(host, fields, series)? {
                return Ok(());
            }
            inbox.has_read(series);
            if began.elapsed() >= TURN_BUDGET {
                return Ok(());
            }
        }
        while let Some(WaitingRow { series, ts, sequence, values }) = inbox.pop() {
            let values: Vec<_> = values.iter().map(|(number, value)| (*number, value.as_ref())).collect();
            self.take(host, InputRow { series, ts, sequence, values: &values })?;
            if began.elapsed() >= TURN_BUDGET || host.sensors.ends() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads a series that came while the sensor had a turn, if the sensor is for its device: all of it.
    fn add_unknown(&mut self, host: &Host, series: SeriesId) {
        if self.cursors.contains_key(&series) {
            return;
        }
        let wanted = host.sensors.tap.wanted(series);
        if let Some(device) = wanted.and_then(|wanted| host.registry().device_by_id(wanted.device)) {
            self.add_device(&device, series, i64::MIN);
        }
    }
}
