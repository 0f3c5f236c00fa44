//! The engine gives rows to the sensors that read them, and turns to the sensors that have something to do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hub::ThreadEnd;
use hub::taps::TakenRows;
use model::SeriesId;

use super::checkpoint::checkpoint;
use super::engine::Engine;
use super::inbox::{Inbox, Values, WaitingRow};
use super::running::Running;
use super::start::series_of;
use super::turn::{Turn, TurnDone};
use crate::host::Host;
use crate::limits::{PUBLISH_INTERVAL, STOP_TIMEOUT, TURN_OVERDUE};

impl Engine {
    /// Gives rows of the tap to the sensors that read them.
    pub(super) fn queue_rows(&mut self, host: &Arc<Host>, taken: &TakenRows) -> Result<(), ThreadEnd> {
        for row in taken.rows() {
            let series = row.series();
            if !self.readers.has(series) {
                self.adopt(host, series);
            }
            let places = self.readers.of_series(series);
            if places.is_empty() {
                continue;
            }
            let (places, values): (Vec<usize>, Values) =
                (places.to_vec(), row.values().map(|(number, value)| (number, value.to_owned())).collect());
            for at in places {
                let row = WaitingRow {
                    series,
                    ts: row.ts(),
                    sequence: row.sequence(),
                    values: Arc::clone(&values),
                };
                self.queue_row(host, at, row)?;
            }
        }
        Ok(())
    }

    fn queue_row(&mut self, host: &Arc<Host>, at: usize, row: WaitingRow) -> Result<(), ThreadEnd> {
        let bytes_max = self.shared.inboxes_bytes_max;
        let slot = &self.slots[at];
        // A sensor that cannot keep up reads the rows from the store later. The others do not wait for it.
        let keeps_up = slot.home().is_some() && !slot.is_behind;
        if keeps_up && !slot.inbox.has_room(&row, bytes_max) {
            self.give_turns(host)?;
        }
        let slot = &mut self.slots[at];
        if slot.inbox.is_marked(row.series) {
            return Ok(());
        }
        if slot.inbox.has_room(&row, bytes_max) {
            slot.inbox.push(row);
        } else {
            host.sensors.metrics.rereads.inc();
            slot.inbox.mark(row.series);
        }
        self.list(at);
        Ok(())
    }

    /// Reads a series that is new here, all of it.
    fn adopt(&mut self, host: &Host, series: SeriesId) {
        let wanted = self.shared.tap.wanted(series);
        let device = wanted.and_then(|wanted| host.registry().device_by_id(wanted.device));
        let Some(device) = device.filter(|device| series_of(host, device) == Some(series)) else { return };
        // A door may have found it before the present fields were wanted.
        self.shared.want(series, device.id, self.fields.wanted());
        for at in self.readers.of_device(&device.name) {
            let reads = match self.slots[at].home_mut() {
                Some(running) => running.add_device(&device, series, i64::MIN),
                // It has a turn, and finds out in the next one.
                None => true,
            };
            if reads {
                self.readers.add(series, at);
            }
        }
        if !self.readers.has(series) {
            // No sensor reads it; a sensor that is loaded later finds it.
            self.shared.tap.unwant(|other, _| other == series);
        }
        self.mark_readers(series);
    }

    /// Lets the rows of a series be read from the store, because they found no room in the tap.
    pub(super) fn mark(&mut self, host: &Host, series: SeriesId) {
        match self.readers.has(series) {
            true => self.mark_readers(series),
            false => self.adopt(host, series),
        }
    }

    fn mark_readers(&mut self, series: SeriesId) {
        for at in self.readers.of_series(series).to_vec() {
            self.slots[at].inbox.mark(series);
            self.list(at);
        }
    }

    /// Lists the sensors whose clock may continue without an element.
    pub(super) fn list_clocks(&mut self) {
        for at in 0..self.slots.len() {
            let slot = &mut self.slots[at];
            if slot.home().is_some_and(Running::needs_ticks) {
                slot.is_tick_due = true;
                self.list(at);
            }
        }
    }

    /// Lists the sensors that have something to do, after places have changed.
    pub(super) fn list_all(&mut self) {
        self.ready.clear();
        for at in 0..self.slots.len() {
            self.slots[at].is_listed = false;
            if self.slots[at].has_work() {
                self.list(at);
            }
        }
    }

    fn list(&mut self, at: usize) {
        if !std::mem::replace(&mut self.slots[at].is_listed, true) {
            self.ready.push(at);
        }
    }

    /// Gives a turn to each sensor that is ready, and waits for those that are not expected to be long.
    pub(super) fn give_turns(&mut self, host: &Arc<Host>) -> Result<(), ThreadEnd> {
        for at in std::mem::take(&mut self.ready) {
            let slot = &mut self.slots[at];
            let lane = slot.home().map(|running| running.pace.lane());
            let may_begin = lane.is_some_and(|lane| lane.may_begin(self.is_held));
            let (Some(lane), true) = (lane, may_begin) else {
                // It comes back, or the change that waits is made.
                self.ready.push(at);
                continue;
            };
            slot.is_listed = false;
            slot.is_tick_due = false;
            let inbox = std::mem::replace(&mut slot.inbox, Inbox::new(&self.inbox_bytes));
            let Some(running) = slot.take() else { continue };
            let turn = Turn { at, running, inbox, host: Arc::clone(host), fields: Arc::clone(&self.fields) };
            self.has_taken = true;
            self.lanes.push(lane, turn);
        }
        self.lanes.wait_for_light();
        self.collect(host)
    }

    /// Takes back the sensors whose turns have not begun, because a change waits for them.
    pub(super) fn recall(&mut self) {
        for Turn { at, running, inbox, .. } in self.lanes.recall() {
            self.slots[at].give_back(running, inbox);
            self.list(at);
        }
    }

    /// Takes back the sensors whose turns have ended.
    pub(super) fn collect(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        let mut end = Ok(());
        for done in self.lanes.take_done() {
            let TurnDone { at, running, inbox, took, end: of_turn } = done;
            match of_turn {
                Ok(()) => self.put_back(host, at, (running, inbox, took))?,
                // The server stops. The next start continues from the last checkpoint of the sensor.
                Err(ThreadEnd::Asked) => {}
                failed => end = failed,
            }
        }
        end
    }

    fn put_back(
        &mut self,
        host: &Host,
        at: usize,
        (running, rest, took): (Box<Running>, Inbox, Duration),
    ) -> Result<(), ThreadEnd> {
        let slot = &mut self.slots[at];
        slot.put_back(running, rest, took);
        if std::mem::take(&mut slot.owes_checkpoint) {
            checkpoint(host, slot.home_mut())?;
        }
        if !slot.inbox.is_empty() {
            self.list(at);
        }
        // A sensor with one long turn after the other is never here when the others are shown.
        if took >= PUBLISH_INTERVAL {
            self.publish_one(host, at);
        }
        Ok(())
    }

    /// Waits for all turns, which end soon when the server stops.
    pub(super) fn wait_for_all(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        let began = Instant::now();
        self.collect(host)?;
        while !self.lanes.is_idle() && began.elapsed() < STOP_TIMEOUT {
            self.lanes.wait_for_one(TURN_OVERDUE);
            self.collect(host)?;
        }
        Ok(())
    }
}
