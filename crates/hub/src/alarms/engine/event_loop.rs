//! The passes of the engine.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{SeriesId, Timestamp};
use sensors::alarm_rules::{Event, EventKind, KeySet};
use uuid::Uuid;

use super::device::{ChangedAttributes, DeviceState};
use super::inbox::Notices;
use super::limits::{CHECKPOINT_INTERVAL, ROWS_PER_COMMIT_MAX, TRANSITIONS_PER_COMMIT_MAX};
use super::rule_action::RuleAction;
use super::rule_book::ProfileRules;
use super::shared::Shared;
use crate::registry::{Device, EntityId, EntityKind};
use crate::taps::{TakenRows, TapRow};
use crate::thread_end::ThreadEnd;

/// How long the engine sleeps while changes of attributes wait for the disk.
const ATTRIBUTES_PAUSE: Duration = Duration::from_millis(5);

/// The evaluation of alarm rules.
pub(super) struct Engine {
    pub(super) shared: Shared,
    pub(super) devices: Vec<Option<DeviceState>>,
    /// Places in `devices` without a device.
    free: Vec<usize>,
    by_device: HashMap<Uuid, usize>,
    pub(super) by_series: SeriesPlaces,
    /// Devices to adopt with the next checkpoint, with the latest time of their rows in microseconds.
    pub(super) moved: HashMap<Uuid, i64>,
    timers: BinaryHeap<Reverse<(Timestamp, usize)>>,
    /// Places of devices whose stored state is older than the present one. A place may be there twice, or without a device.
    pub(super) dirty: Vec<usize>,
    pub(super) acts: Vec<RuleAction>,
    /// The generation of the registry that the devices were compared with.
    pub(super) generation: u64,
    pub(super) checkpointed: Instant,
    /// The time of the last stored checkpoint of this process.
    pub(super) stored: Option<Timestamp>,
    mismatches: u64,
    events: u64,
}

impl Engine {
    pub(super) fn new(shared: Shared) -> Self {
        let generation = shared.registry.generation();
        Self {
            shared,
            devices: Vec::new(),
            free: Vec::new(),
            by_device: HashMap::new(),
            by_series: SeriesPlaces::default(),
            moved: HashMap::new(),
            timers: BinaryHeap::new(),
            dirty: Vec::new(),
            acts: Vec::new(),
            generation,
            checkpointed: Instant::now(),
            stored: None,
            mismatches: 0,
            events: 0,
        }
    }

    /// Evaluates until the tap is stopped.
    pub(super) fn run(&mut self) -> Result<(), ThreadEnd> {
        self.load()?;
        while self.shared.tap.wait(self.pause()) {
            self.pass()?;
        }
        // What is durable is evaluated before the end, so the next start has little to read again.
        self.pass()?;
        self.checkpoint((self.shared.now)())
    }

    fn pass(&mut self) -> Result<(), ThreadEnd> {
        let now = (self.shared.now)();
        let mut is_due = self.checkpointed.elapsed() >= CHECKPOINT_INTERVAL;
        // First the notices: rows that came after new rules have the keys of these rules.
        let notices = self.shared.inbox.take(self.shared.kv.progress().durable);
        is_due |= !notices.profiles.is_empty();
        self.take_notices(notices, now)?;
        let taken = self.shared.tap.take_durable(&*self.shared.store);
        self.take_rows(&taken, now)?;
        for series in &taken.lost {
            self.shared.metrics.alarms.rereads.inc();
            self.reread_series(*series)?;
        }
        self.fire_timers(now);
        self.commit()?;
        self.count();
        if is_due {
            self.compare_with_registry()?;
            self.checkpoint(now)?;
            self.checkpointed = Instant::now();
        }
        Ok(())
    }

    /// Until the next timer or checkpoint.
    fn pause(&self) -> Duration {
        let left = CHECKPOINT_INTERVAL.saturating_sub(self.checkpointed.elapsed());
        if self.shared.inbox.waits() {
            return ATTRIBUTES_PAUSE;
        }
        let Some(Reverse((deadline, _))) = self.timers.peek() else { return left };
        let left_us = deadline.micros().saturating_sub((self.shared.now)().micros());
        left.min(Duration::from_micros(u64::try_from(left_us).unwrap_or(0)))
    }

    fn take_rows(&mut self, taken: &TakenRows, now: Timestamp) -> Result<(), ThreadEnd> {
        for (count, row) in taken.rows().enumerate() {
            self.take_row(row, now)?;
            let is_full = self.acts.len() >= TRANSITIONS_PER_COMMIT_MAX;
            if is_full || count % ROWS_PER_COMMIT_MAX == ROWS_PER_COMMIT_MAX - 1 {
                self.commit()?;
            }
        }
        Ok(())
    }

    fn take_row(&mut self, row: TapRow<'_>, now: Timestamp) -> Result<(), ThreadEnd> {
        let Some(at) = self.place_of(row.series(), row.ts())? else { return Ok(()) };
        let Some(at) = self.with_generation(at, row)? else { return self.reread_series(row.series()) };
        let mut keys = KeySet::EMPTY;
        let device = self.devices[at].as_mut().expect("BUG: the place was looked at above");
        for (number, value) in row.values() {
            // The numbers of rules fit a byte.
            let number = number as u8;
            if device.values.put(number, row.ts(), value) {
                keys.add(number);
            }
        }
        self.row_changed(at, keys, row.ts(), now);
        Ok(())
    }

    /// The place of the device of a row, with the rules that the numbers of the row's keys belong to. `None` if these are not the
    /// present rules.
    fn with_generation(&mut self, at: usize, row: TapRow<'_>) -> Result<Option<usize>, ThreadEnd> {
        let Some(state) = &self.devices[at] else { return Ok(None) };
        if state.profile.wanted.generation() == row.generation() {
            return Ok(Some(at));
        }
        let (device, profile) = (state.device, state.profile.profile);
        self.commit()?;
        let device = self.shared.registry.device_by_id(device);
        let rules = device.and_then(|device| self.shared.book.of(device.profile.id));
        let Some(rules) = rules.filter(|rules| rules.wanted.generation() == row.generation()) else {
            return Ok(None);
        };
        if rules.profile == profile {
            self.rules_changed(profile)?;
        } else if let Some(old) = self.remove(at) {
            self.forget_records(vec![old.device])?;
        }
        self.place_of(row.series(), row.ts())
    }

    /// Evaluates a row whose values are in the state.
    pub(super) fn row_changed(&mut self, at: usize, keys: KeySet, ts: Timestamp, now: Timestamp) {
        if keys.is_empty() {
            return;
        }
        if let Some(device) = &mut self.devices[at] {
            device.row_us = device.row_us.max(ts.micros());
        }
        self.evaluate(at, &DeviceState::row_event(keys, ts, now));
    }

    /// Evaluates an event whose values are in the state of a device.
    pub(super) fn evaluate(&mut self, at: usize, event: &Event) {
        let Self { devices, acts, mismatches, .. } = self;
        let Some(device) = &mut devices[at] else { return };
        device.on_event(event, mismatches, |device, alarm, transition| {
            acts.push(RuleAction::of((at, device), alarm, transition, event.ts, event.now));
        });
        self.events += 1;
        self.changed(at);
    }

    /// Remembers to store a state, and sets its timer.
    pub(super) fn changed(&mut self, at: usize) {
        let Some(device) = &mut self.devices[at] else { return };
        if !std::mem::replace(&mut device.dirty, true) {
            self.dirty.push(at);
        }
        let Some(deadline) = device.deadline() else { return };
        // A timer that comes earlier sets the next one itself.
        if device.armed.is_none_or(|armed| deadline < armed) {
            device.armed = Some(deadline);
            self.timers.push(Reverse((deadline, at)));
        }
    }

    fn fire_timers(&mut self, now: Timestamp) {
        while let Some(Reverse((deadline, at))) = self.timers.peek().copied() {
            if deadline > now {
                return;
            }
            self.timers.pop();
            let Self { devices, acts, .. } = self;
            let Some(device) = devices[at].as_mut().filter(|device| device.armed == Some(deadline)) else {
                continue;
            };
            device.armed = None;
            device.on_timer(now, |device, alarm, transition| {
                let ts = Timestamp::from_micros(device.row_us.max(0));
                acts.push(RuleAction::of((at, device), alarm, transition, ts, now));
            });
            self.changed(at);
        }
    }

    fn take_notices(&mut self, notices: Notices, now: Timestamp) -> Result<(), ThreadEnd> {
        if !notices.profiles.is_empty() {
            self.commit()?;
            for profile in &notices.profiles {
                self.rules_changed(*profile)?;
            }
            for (device, row_us) in notices.reported {
                self.adopt(device, row_us)?;
            }
        }
        if notices.ended_overflow {
            self.compare_with_alarms();
        }
        for device in notices.ended {
            if let Some(at) = self.by_device.get(&device) {
                self.compare_with_alarms_of(*at);
            }
        }
        let (devices, owners): (Vec<EntityId>, Vec<EntityId>) =
            notices.attributes.into_keys().partition(|entity| entity.kind == EntityKind::Device);
        self.take_owner_attributes(owners, now)?;
        for entity in devices {
            let Some(device) = self.shared.registry.device_by_id(entity.id) else { continue };
            let Some(at) = self.place_of_attributes(&device)? else { continue };
            self.take_attributes(at, &device, now)?;
        }
        Ok(())
    }

    /// Reads the attributes of the devices whose rules read those of one of the owners.
    fn take_owner_attributes(&mut self, owners: Vec<EntityId>, now: Timestamp) -> Result<(), ThreadEnd> {
        if owners.is_empty() {
            return Ok(());
        }
        let owners: HashSet<EntityId> = owners.into_iter().collect();
        for at in 0..self.devices.len() {
            let Some(state) = self.devices[at].as_ref().filter(|state| state.reads_owner(&owners)) else {
                continue;
            };
            let Some(device) = self.shared.registry.device_by_id(state.device) else { continue };
            self.take_attributes(at, &device, now)?;
        }
        Ok(())
    }

    /// Reads the attributes of a device, and evaluates those that have changed.
    pub(super) fn take_attributes(
        &mut self,
        at: usize,
        device: &Device,
        now: Timestamp,
    ) -> Result<(), ThreadEnd> {
        let Some(state) = &mut self.devices[at] else { return Ok(()) };
        let attributes = self.shared.attributes(device, &state.profile)?;
        let ChangedAttributes { keys, ts, any } = state.set_attributes(attributes);
        if !keys.is_empty() {
            let event = Event { kind: EventKind::Attributes, keys, ts: ts.unwrap_or(now), now };
            self.evaluate(at, &event);
        } else if any {
            // It may change how long a condition must hold.
            self.changed(at);
        }
        Ok(())
    }

    /// The place of the device of a series. A new one has the values from before `ts`. `None` if nothing is wanted of the series any
    /// more.
    fn place_of(&mut self, series: SeriesId, ts: Timestamp) -> Result<Option<usize>, ThreadEnd> {
        if let Some(at) = self.by_series.get(&series) {
            return Ok(Some(*at));
        }
        let Some(wanted) = self.shared.tap.wanted(series) else { return Ok(None) };
        let Some(device) = self.shared.registry.device_by_id(wanted.device) else { return Ok(None) };
        let Some(rules) = self.shared.book.of(device.profile.id) else { return Ok(None) };
        let at = match self.by_device.get(&device.id) {
            // It writes to another series since it was renamed.
            Some(at) => *at,
            None => {
                let at = self.add(DeviceState::new(device.id, rules), &device)?;
                self.read_before(at, series, ts)?;
                at
            }
        };
        self.by_series.insert(series, at);
        Ok(Some(at))
    }

    /// The place of a device whose attributes have changed. `None` if its profile has no rules.
    fn place_of_attributes(&mut self, device: &Device) -> Result<Option<usize>, ThreadEnd> {
        if let Some(at) = self.by_device.get(&device.id) {
            return Ok(Some(*at));
        }
        let Some(rules) = self.shared.book.of(device.profile.id) else { return Ok(None) };
        let mut state = DeviceState::new(device.id, rules);
        state.set_fields(device);
        self.compare_new(&mut state);
        let at = self.put(state);
        if let Some(series) = self.shared.series(device) {
            self.read_before(at, series, Timestamp::MAX)?;
            self.by_series.insert(series, at);
        }
        Ok(Some(at))
    }

    /// Adds a device with its attributes, which are not an event.
    pub(super) fn add(&mut self, mut state: DeviceState, device: &Device) -> Result<usize, ThreadEnd> {
        state.set_fields(device);
        let attributes = self.shared.attributes(device, &state.profile)?;
        state.set_attributes(attributes);
        self.compare_new(&mut state);
        Ok(self.put(state))
    }

    /// A device that is new here may have active alarms.
    fn compare_new(&self, state: &mut DeviceState) {
        let index = self.shared.alarms.read();
        for (alarm, of_alarm) in state.profile.rules.alarms().iter().zip(&mut state.alarms) {
            let active = index.active(EntityId::device(state.device), &alarm.name);
            of_alarm.severity = active.map(|active| active.severity);
        }
    }

    pub(super) fn put(&mut self, mut state: DeviceState) -> usize {
        let device = state.device;
        // It is not among the dirty places yet, whatever its fields have changed.
        state.dirty = false;
        let at = self.free.pop().unwrap_or_else(|| {
            self.devices.push(None);
            self.devices.len() - 1
        });
        self.devices[at] = Some(state);
        self.by_device.insert(device, at);
        self.changed(at);
        at
    }

    /// Removes a device from memory.
    pub(super) fn remove(&mut self, at: usize) -> Option<DeviceState> {
        let state = self.devices[at].take()?;
        self.by_device.remove(&state.device);
        self.by_series.remove_place(at);
        self.free.push(at);
        Some(state)
    }

    pub(super) fn device_at(&self, device: Uuid) -> Option<usize> {
        self.by_device.get(&device).copied()
    }

    /// Clears the states of alarms that are not active any more.
    fn compare_with_alarms(&mut self) {
        for at in 0..self.devices.len() {
            self.compare_with_alarms_of(at);
        }
    }

    /// Clears the states of alarms of a device that are not active any more.
    pub(super) fn compare_with_alarms_of(&mut self, at: usize) {
        let Self { shared, devices, .. } = self;
        let Some(device) = &mut devices[at] else { return };
        let index = shared.alarms.read();
        let profile: Arc<ProfileRules> = Arc::clone(&device.profile);
        let mut changed = false;
        for (number, (alarm, state)) in profile.rules.alarms().iter().zip(&mut device.alarms).enumerate() {
            let is_active = index.active(EntityId::device(device.device), &alarm.name).is_some();
            if state.severity.is_some() && !is_active {
                changed |= state.ended();
                device.touched[number] = None;
            }
        }
        drop(index);
        if changed {
            self.changed(at);
        }
    }

    /// Moves the counts of this pass to the metrics.
    pub(super) fn count(&mut self) {
        let metrics = &self.shared.metrics.alarms;
        metrics.events.inc_by(std::mem::take(&mut self.events));
        metrics.mismatches.inc_by(std::mem::take(&mut self.mismatches));
        metrics.devices.set(i64::try_from(self.by_device.len()).unwrap_or(i64::MAX));
    }
}

/// The places of the devices by their series.
#[derive(Debug, Default)]
pub(super) struct SeriesPlaces {
    places: HashMap<SeriesId, usize>,
    /// The series of each place, so that a device leaves without a look at all series.
    series: HashMap<usize, Vec<SeriesId>>,
}

impl SeriesPlaces {
    pub(super) fn get(&self, series: &SeriesId) -> Option<&usize> {
        self.places.get(series)
    }

    pub(super) fn insert(&mut self, series: SeriesId, at: usize) {
        if let Some(before) = self.places.insert(series, at)
            && let Some(of_before) = self.series.get_mut(&before)
        {
            of_before.retain(|other| *other != series);
        }
        self.series.entry(at).or_default().push(series);
    }

    fn remove_place(&mut self, at: usize) {
        for series in self.series.remove(&at).into_iter().flatten() {
            self.places.remove(&series);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_leaves_with_all_its_series_and_no_other_ones() {
        let mut places = SeriesPlaces::default();
        for (series, at) in [(1, 0), (2, 0), (3, 1), (4, 0), (4, 1), (3, 1)] {
            places.insert(SeriesId(series), at);
        }
        places.remove_place(0);
        let found = [1, 2, 3, 4].map(|series| places.get(&SeriesId(series)).copied());
        assert_eq!(found, [None, None, Some(1), Some(1)]);
        places.insert(SeriesId(5), 0);
        places.remove_place(1);
        let found = [3, 4, 5].map(|series| places.get(&SeriesId(series)).copied());
        assert_eq!(found, [None, None, Some(0)]);
        places.remove_place(7);
    }
}
