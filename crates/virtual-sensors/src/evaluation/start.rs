//! A sensor begins, or continues from its record: its windows are filled from the store, and what it has not evaluated is evaluated.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use hub::ThreadEnd;
use hub::registry::Device;
use model::{SeriesId, SeriesKey, TimeRange, Timestamp, ValueRef};
use sensors::virtual_sensors::limits::UNIQUE_TIMES_MAX;
use sensors::virtual_sensors::plan::{SourceId, SourcePlan};
use sensors::virtual_sensors::{NeededElements, Sensor};

use super::cursor::Cursor;
use super::destination::Destination;
use super::evaluate::InputRow;
use super::fields_read::FieldsRead;
use super::output::Output;
use super::pace::Pace;
use super::record::SensorRecord;
use super::reread::{Reread, newest, newest_times};
use super::running::{Running, Source};
use crate::files::Candidate;
use crate::host::Host;
use crate::info::ExternalSource;
use crate::limits::{DEVICES_PER_SENSOR_MAX, TURN_BUDGET};
use crate::metrics::SensorCounts;
use crate::shared::{Outputs, SourceSelector};

impl Running {
    /// Starts a sensor. Its windows are filled; its first turns evaluate what is in the store.
    pub(super) fn start(
        host: &Host,
        fields: &FieldsRead,
        outputs: &Arc<Outputs>,
        (file, candidate): (&str, Arc<Candidate>),
        destination: Destination,
        external: Vec<Arc<ExternalSource>>,
    ) -> Result<Self, ThreadEnd> {
        let record = SensorRecord::read(&*host.kv, &candidate.plan.name).map_err(ThreadEnd::failed)?;
        let plan = Arc::clone(&candidate.plan);
        let same = record.as_ref().filter(|record| record.descriptor == candidate.digest);
        let sensor = Sensor::resume(Arc::clone(&plan), plan.lateness, same.map(|record| &record.checkpoint));
        let sensor = sensor.ending_with(Arc::clone(&host.sensors.end));
        let last = record.as_ref().and_then(|record| record.last_row);
        let mut running = Self {
            file: file.to_owned(),
            sources: sources(&candidate, fields),
            candidate,
            external,
            plan,
            sensor,
            destination,
            outputs: Arc::clone(outputs),
            cursors: HashMap::new(),
            output: Output::after(last),
            newest: None,
            rows_out_of_order: 0,
            devices_left_out: 0,
            is_changed: true,
            is_unseen: true,
            pace: Pace::default(),
            counted: SensorCounts::default(),
            trimmed: None,
        };
        for device in running.devices(host) {
            running.add_existing(host, &device, record.as_ref(), same.is_some())?;
        }
        running.fill_windows(host, fields)?;
        if same.is_some() {
            // Its slides in time continue also if no device reports.
            let evaluated =
                running.cursors.values().map(|cursor| cursor.evaluated_us(running.passed())).max();
            let evaluated = evaluated.filter(|us| *us > i64::MIN);
            running.newest = evaluated.map(|us| (us.div_euclid(1_000), Instant::now()));
        }
        Ok(running)
    }

    /// The devices that it reads now.
    pub(super) fn devices(&self, host: &Host) -> Vec<Arc<Device>> {
        let tenant = host.registry().default_tenant();
        let named = self.sources.iter().map(|source| source.selector.is_of_one());
        // Without a pattern nobody needs to look at all devices.
        match named.collect::<Option<Vec<&str>>>() {
            Some(names) => {
                let mut devices: Vec<_> = names
                    .into_iter()
                    .filter_map(|name| host.registry().device_by_name(tenant, name))
                    .collect();
                devices.retain(|device| !self.sources_of(device).is_empty());
                devices.sort_by_key(|device| device.id);
                devices.dedup_by_key(|device| device.id);
                devices
            }
            None => host.registry().devices_where(tenant, |device| {
                self.sources.iter().any(|source| source.selector.is_for(device, &self.outputs))
            }),
        }
    }

    /// Reads a device that may have reported before.
    fn add_existing(
        &mut self,
        host: &Host,
        device: &Device,
        record: Option<&SensorRecord>,
        is_same: bool,
    ) -> Result<(), ThreadEnd> {
        let Some(series) = series_of(host, device) else { return Ok(()) };
        let known = record.and_then(|record| {
            let mut inputs = record.inputs.iter();
            let of_device = |input: &&super::record::InputPoint| {
                input.device == device.name && input.table == device.profile.table.name()
            };
            inputs.find(of_device).map(|input| input.us)
        });
        let evaluated_us = match known {
            Some(us) => us,
            // It is new since the record, so all its rows are.
            None if is_same => i64::MIN,
            // What it has reported before the sensor began is only for the windows.
            None => newest(&*host.store, series).map_err(ThreadEnd::failed)?.unwrap_or(i64::MIN),
        };
        self.add_device(device, series, evaluated_us);
        Ok(())
    }

    /// Reads the rows of a device after a time. Returns whether it reads the device.
    pub(super) fn add_device(&mut self, device: &Device, series: SeriesId, evaluated_us: i64) -> bool {
        let sources = self.sources_of(device);
        if sources.is_empty() || self.cursors.contains_key(&series) {
            return false;
        }
        if self.cursors.len() >= DEVICES_PER_SENSOR_MAX {
            self.devices_left_out += 1;
            self.is_unseen = true;
            return false;
        }
        let cursor = Cursor::new(device.id, &device.name, device.profile.table.name(), sources, evaluated_us);
        self.cursors.insert(series, cursor);
        self.is_unseen = true;
        true
    }

    /// Fills the windows with the rows from before.
    fn fill_windows(&mut self, host: &Host, fields: &FieldsRead) -> Result<(), ThreadEnd> {
        for at in 0..self.sources.len() {
            let parts = self.window_parts(host, at)?;
            let mut read = Reread::new(&*host.store, fields, parts).map_err(ThreadEnd::failed)?;
            while let Some((series, row)) = read.next().map_err(ThreadEnd::failed)? {
                let values = as_refs(&row.values);
                self.fill(at, InputRow { series, ts: row.ts, sequence: 0, values: &values });
            }
        }
        if self.plan.unique_timestamps {
            self.restore_times(host)?;
        }
        self.sensor.settle();
        Ok(())
    }

    /// The series and times of the rows that the window of a source needs.
    fn window_parts(&self, host: &Host, at: usize) -> Result<Vec<(SeriesId, TimeRange)>, ThreadEnd> {
        let id = self.sources[at].id;
        let passed = self.passed();
        let done: Vec<(SeriesId, i64)> = self
            .cursors
            .iter()
            .filter(|(_, cursor)| cursor.sources.contains(&id))
            .map(|(series, cursor)| (*series, cursor.evaluated_us(passed)))
            .filter(|(_, us)| *us > i64::MIN)
            .collect();
        let Some(newest_us) = done.iter().map(|(_, us)| *us).max() else { return Ok(Vec::new()) };
        let from_us = match self.sensor.reach(id) {
            NeededElements::Newest(0) => return Ok(Vec::new()),
            NeededElements::Newest(count) => {
                let mut times = Vec::new();
                for (series, us) in &done {
                    let range = TimeRange::new(Timestamp::MIN, after(*us));
                    times.extend(
                        newest_times(&*host.store, *series, range, count).map_err(ThreadEnd::failed)?,
                    );
                }
                times.sort_unstable_by(|a, b| b.cmp(a));
                times.truncate(count);
                times.last().copied().unwrap_or(newest_us)
            }
            NeededElements::Since(ms) => ms.saturating_mul(1_000),
            NeededElements::LastMillis(ms) => {
                newest_us.div_euclid(1_000).saturating_sub(ms).saturating_mul(1_000)
            }
        };
        let from = Timestamp::from_micros(from_us);
        Ok(done.into_iter().map(|(series, us)| (series, TimeRange::new(from, after(us)))).collect())
    }

    /// Remembers the times that the output has. Rows after the newest evaluated one are made again.
    fn restore_times(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        let passed = self.passed();
        let Some(us) = self.cursors.values().map(|cursor| cursor.evaluated_us(passed)).max() else {
            return Ok(());
        };
        let range = TimeRange::new(Timestamp::MIN, after(us));
        let times = newest_times(&*host.store, self.destination.series, range, UNIQUE_TIMES_MAX);
        for us in times.map_err(ThreadEnd::failed)? {
            self.sensor.had_row(us.div_euclid(1_000));
        }
        Ok(())
    }

    /// Evaluates rows that only the store has, of one series or of all, for the time of a turn. Returns whether there are no more.
    pub(super) fn evaluate_stored(
        &mut self,
        host: &Host,
        fields: &FieldsRead,
        only: Option<SeriesId>,
    ) -> Result<bool, ThreadEnd> {
        let opened = Instant::now();
        let passed = self.passed();
        let wanted = self.cursors.iter().filter(|(series, _)| only.is_none_or(|only| only == **series));
        let parts: Vec<_> = wanted.map(|(series, cursor)| (*series, cursor.rest(passed))).collect();
        self.output.is_rereading = true;
        let mut read = Reread::new(&*host.store, fields, parts).map_err(ThreadEnd::failed)?;
        // Many devices cost a look at each before the first row: what a turn evaluates is worth that.
        let (began, budget) = (Instant::now(), TURN_BUDGET.max(opened.elapsed()));
        let mut is_done = true;
        while let Some((series, row)) = read.next().map_err(ThreadEnd::failed)? {
            let values = as_refs(&row.values);
            self.take(host, InputRow { series, ts: row.ts, sequence: 0, values: &values })?;
            if began.elapsed() >= budget || host.sensors.ends() {
                is_done = false;
                break;
            }
        }
        self.output.flush(host, &mut self.destination)?;
        self.output.is_rereading = false;
        if !is_done {
            return Ok(false);
        }
        let appended = host.store.progress().appended;
        let read = self.cursors.iter_mut().filter(|(series, _)| only.is_none_or(|only| only == **series));
        read.for_each(|(_, cursor)| cursor.read_through(appended));
        Ok(true)
    }
}

/// The series of a device that has reported.
pub(super) fn series_of(host: &Host, device: &Device) -> Option<SeriesId> {
    host.store.find_series(&SeriesKey::device(&device.profile.table, &device.name).ok()?)
}

/// The sources, with the devices that they read.
fn sources(candidate: &Candidate, fields: &FieldsRead) -> Vec<Source> {
    let of = |(id, source): (SourceId, &SourcePlan)| {
        let numbers =
            source.columns[1..].iter().filter_map(|name| Some((name.clone(), fields.number(name)?)));
        let numbers = numbers.collect();
        let words = format!("source {}: {}", source.alias, source.wrapper.describe());
        Source { id, selector: SourceSelector::of(&candidate.plan, id), numbers, words }
    };
    candidate.plan.sources().map(of).collect()
}

fn after(us: i64) -> Timestamp {
    Timestamp::from_micros(us).saturating_add_micros(1)
}

fn as_refs(values: &[(u16, model::Value)]) -> Vec<(u16, ValueRef<'_>)> {
    values.iter().map(|(number, value)| (*number, value.as_ref())).collect()
}
