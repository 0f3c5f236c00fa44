//! The start of the engine, and changes of rules and devices.

use std::collections::HashMap;
use std::sync::Arc;

use kv::{Direction, KeyRange};
use model::{SeriesId, Timestamp};
use sensors::alarm_rules::KeySource;
use uuid::Uuid;

use super::commit::state_key;
use super::device::DeviceState;
use super::event_loop::Engine;
use super::limits::{REREAD_SLACK_US, STATES_PER_COMMIT_MAX};
use super::rule_book::ProfileRules;
use super::state_record::{EVALUATED, PROGRESS, STATES, StateRecord};
use crate::registry::Device;
use crate::thread_end::ThreadEnd;

impl Engine {
    /// Loads the states, and evaluates what came after the last checkpoint.
    pub(super) fn load(&mut self) -> Result<(), ThreadEnd> {
        let evaluated = self.evaluated()?;
        let mut records = self.records()?;
        for rules in self.shared.book.all() {
            for device in self.shared.registry.devices_of_profile(rules.tenant, rules.profile) {
                let record = records.remove(&device.id);
                self.resume(&device, &rules, record, evaluated)?;
            }
        }
        // The other records are of devices without rules.
        self.forget_records(records.into_keys().collect())?;
        if evaluated.is_none() {
            self.find_moved()?;
        }
        self.checkpoint((self.shared.now)())
    }

    fn evaluated(&self) -> Result<Option<Timestamp>, ThreadEnd> {
        let bytes = self.shared.kv.get(PROGRESS, EVALUATED).map_err(ThreadEnd::failed)?;
        let micros = bytes.and_then(|bytes| bytes.as_ref().try_into().ok().map(i64::from_le_bytes));
        Ok(micros.map(Timestamp::from_micros))
    }

    fn records(&self) -> Result<HashMap<Uuid, StateRecord>, ThreadEnd> {
        let mut records = HashMap::new();
        let scan = self.shared.kv.scan(STATES, &KeyRange::all(), Direction::Ascending);
        for record in scan.map_err(ThreadEnd::failed)? {
            let (key, value) = record.map_err(ThreadEnd::failed)?;
            let record = StateRecord::decode(&key, &value).map_err(ThreadEnd::failed)?;
            if let Ok(device) = Uuid::from_slice(&key) {
                records.insert(device, record);
            }
        }
        Ok(records)
    }

    /// Continues with a device after a start.
    fn resume(
        &mut self,
        device: &Device,
        rules: &Arc<ProfileRules>,
        record: Option<StateRecord>,
        evaluated: Option<Timestamp>,
    ) -> Result<(), ThreadEnd> {
        let record = record.filter(|record| record.profile == rules.profile);
        let series = self.shared.series(device);
        if let Some(series) = series {
            self.shared.tap.want(series, device.id, &rules.wanted);
        }
        let (at, from) = match (&record, series) {
            (Some(record), _) => {
                let state = record.state(device.id, Arc::clone(rules));
                let row = Timestamp::from_micros(state.row_us);
                let slack = evaluated.map(|time| time.saturating_add_micros(-REREAD_SLACK_US));
                (self.resume_state(state, device)?, slack.map_or(row, |slack| slack.min(row)))
            }
            // Every device that had reported when it got its rules has a state, so all its rows are new.
            (None, Some(_)) if evaluated.is_some() => {
                (self.add(DeviceState::new(device.id, Arc::clone(rules)), device)?, Timestamp::MIN)
            }
            (None, _) => return Ok(()),
        };
        let Some(series) = series else { return Ok(()) };
        self.by_series.insert(series, at);
        if self.has_news(at, series, from)? {
            self.reread(series, from)?;
        }
        Ok(())
    }

    /// Takes a stored state. Attributes that have changed since are an event, and alarms that were cleared since begin again.
    fn resume_state(&mut self, mut state: DeviceState, device: &Device) -> Result<usize, ThreadEnd> {
        state.set_fields(device);
        let at = self.put(state);
        self.compare_with_alarms_of(at);
        self.take_attributes(at, device, (self.shared.now)())?;
        Ok(at)
    }

    /// Whether the store has a value that the state does not have. It reads no files.
    fn has_news(&self, at: usize, series: SeriesId, from: Timestamp) -> Result<bool, ThreadEnd> {
        let Some(device) = &self.devices[at] else { return Ok(false) };
        let keys: Vec<(u8, &str)> = device.profile.keys(KeySource::TimeSeries).collect();
        let names: Vec<String> = keys.iter().map(|(_, name)| (*name).to_owned()).collect();
        let latest = self.shared.store.latest(series, Some(&names)).map_err(ThreadEnd::failed)?;
        Ok(latest.iter().any(|latest| {
            let number = keys.iter().find(|(_, name)| *name == latest.key).map(|(number, _)| *number);
            let known = number.and_then(|number| device.values.get(number));
            latest.ts >= from && known.is_none_or(|known| known.ts < latest.ts || known.value != latest.value)
        }))
    }

    /// Takes the new rules of a profile, and forgets the states of rules that are gone. Alarms stay as they are.
    pub(super) fn rules_changed(&mut self, profile: Uuid) -> Result<(), ThreadEnd> {
        let rules = self.shared.book.of(profile);
        let places: Vec<usize> = (0..self.devices.len())
            .filter(|at| self.devices[*at].as_ref().is_some_and(|state| state.profile.profile == profile))
            .collect();
        let mut forgotten = Vec::new();
        for at in places {
            let Some(old) = self.remove(at) else { continue };
            let device = self.shared.registry.device_by_id(old.device);
            match (&rules, device) {
                (Some(rules), Some(device)) => {
                    let record = StateRecord::of(&old);
                    let state = record.state(device.id, Arc::clone(rules));
                    let at = self.add(state, &device)?;
                    if let Some(series) = self.shared.series(&device) {
                        self.by_series.insert(series, at);
                        // Keys that no rule has read before have values too.
                        self.read_missing(at, series)?;
                    }
                }
                _ => forgotten.push(old.device),
            }
        }
        self.forget_records(forgotten)
    }

    /// Takes a device that had reported before it got its rules: its rows up to a time are not events.
    pub(super) fn adopt(&mut self, device: Uuid, row_us: i64) -> Result<(), ThreadEnd> {
        if self.device_at(device).is_some() {
            return Ok(());
        }
        let Some(device) = self.shared.registry.device_by_id(device) else { return Ok(()) };
        let (rules, series) = (self.shared.book.of(device.profile.id), self.shared.series(&device));
        let (Some(rules), Some(series)) = (rules, series) else { return Ok(()) };
        let at = self.add(DeviceState { row_us, ..DeviceState::new(device.id, rules) }, &device)?;
        self.by_series.insert(series, at);
        let next = Timestamp::from_micros(row_us).saturating_add_micros(1);
        self.read_before(at, series, next)?;
        // Rows that came before the tap wanted the series are only in the store.
        self.reread(series, next)
    }

    /// Finds devices that have moved to a profile with rules, or that reported before it had rules. A row that they report now is
    /// an event and takes the device, so they are adopted only with the next checkpoint.
    fn find_moved(&mut self) -> Result<(), ThreadEnd> {
        for rules in self.shared.book.all() {
            for device in self.shared.registry.devices_of_profile(rules.tenant, rules.profile) {
                let Some(series) = self.shared.series(&device) else { continue };
                if self.device_at(device.id).is_none() {
                    let latest = self.shared.store.latest(series, Some(&rules.telemetry()));
                    let latest = latest.map_err(ThreadEnd::failed)?.iter().map(|latest| latest.ts).max();
                    self.moved.extend(latest.map(|ts| (device.id, ts.micros())));
                }
                self.shared.tap.want(series, device.id, &rules.wanted);
            }
        }
        Ok(())
    }

    fn adopt_moved(&mut self) -> Result<(), ThreadEnd> {
        for (device, row_us) in std::mem::take(&mut self.moved) {
            let known = self.shared.registry.device_by_id(device);
            let series = known.and_then(|device| self.shared.series(&device));
            match series.is_some_and(|series| self.shared.tap.has_rows_of(series)) {
                true => drop(self.moved.insert(device, row_us)),
                false => self.adopt(device, row_us)?,
            }
        }
        Ok(())
    }

    /// Reads the newest values of keys that have none in the state.
    fn read_missing(&mut self, at: usize, series: SeriesId) -> Result<(), ThreadEnd> {
        let Some(device) = &mut self.devices[at] else { return Ok(()) };
        let profile = Arc::clone(&device.profile);
        let missing: Vec<(u8, String)> = profile
            .keys(KeySource::TimeSeries)
            .filter(|(number, _)| device.values.get(*number).is_none())
            .map(|(number, name)| (number, name.to_owned()))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = missing.iter().map(|(_, name)| name.clone()).collect();
        let limit = device.row_us;
        for latest in self.shared.store.latest(series, Some(&names)).map_err(ThreadEnd::failed)? {
            let number = missing.iter().find(|(_, name)| *name == latest.key).map(|(number, _)| *number);
            // A later one comes from the tap, as an event.
            if let Some(number) = number.filter(|_| latest.ts.micros() <= limit) {
                device.values.put(number, latest.ts, latest.value.as_ref());
            }
        }
        Ok(())
    }

    /// Forgets devices that are gone or have another profile, and learns new names.
    pub(super) fn compare_with_registry(&mut self) -> Result<(), ThreadEnd> {
        self.adopt_moved()?;
        let generation = self.shared.registry.generation();
        if generation == self.generation {
            return Ok(());
        }
        self.generation = generation;
        let (mut forgotten, mut moved) = (Vec::new(), Vec::new());
        for at in 0..self.devices.len() {
            let Some(state) = &mut self.devices[at] else { continue };
            let device = self.shared.registry.device_by_id(state.device);
            match device.filter(|device| device.profile.id == state.profile.profile) {
                Some(device) => {
                    let before = state.dirty;
                    if state.customer != device.customer && state.profile.reads(KeySource::CustomerAttribute)
                    {
                        moved.push((at, Arc::clone(&device)));
                    }
                    state.set_fields(&device);
                    if state.dirty && !before {
                        self.dirty.push(at);
                    }
                }
                None => forgotten.extend(self.remove(at).map(|state| state.device)),
            }
        }
        for (at, device) in moved {
            self.take_attributes(at, &device, (self.shared.now)())?;
        }
        let registry = &self.shared.registry;
        self.shared.tap.unwant(|_, wanted| {
            let device = registry.device_by_id(wanted.device);
            device.is_none_or(|device| self.shared.book.of(device.profile.id).is_none())
        });
        self.forget_records(forgotten)?;
        self.find_moved()
    }

    /// The place of the device of a series, which is new here.
    pub(super) fn adopt_series(&mut self, series: SeriesId) -> Result<Option<usize>, ThreadEnd> {
        let Some(wanted) = self.shared.tap.wanted(series) else { return Ok(None) };
        if let Some(at) = self.device_at(wanted.device) {
            return Ok(Some(at));
        }
        let Some(device) = self.shared.registry.device_by_id(wanted.device) else { return Ok(None) };
        let Some(rules) = self.shared.book.of(device.profile.id) else { return Ok(None) };
        self.add(DeviceState::new(device.id, rules), &device).map(Some)
    }

    pub(super) fn forget_records(&mut self, devices: Vec<Uuid>) -> Result<(), ThreadEnd> {
        if devices.is_empty() {
            return Ok(());
        }
        for devices in devices.chunks(STATES_PER_COMMIT_MAX) {
            self.change(|_, _, changes| {
                for device in devices {
                    changes.batch().delete(STATES, state_key(*device));
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
