//! The engine follows the files of the directory, and the devices of the registry.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use hub::ThreadEnd;
use hub::registry::Device;
use kv::WriteBatch;

use super::begin_followers::{begin_followers, forget_followers};
use super::checkpoint::checkpoint;
use super::destination::{Destination, external_sources};
use super::durable;
use super::engine::Engine;
use super::readers::Readers;
use super::record::SENSORS;
use super::reread::newest;
use super::running::Running;
use super::sensor_output::sensor_output;
use super::slot::Slot;
use super::start::series_of;
use crate::files::{Candidate, Changes, SensorFile};
use crate::files::{Node, refusals};
use crate::host::Host;
use crate::info::ExternalSource;
use crate::shared::SourceSelector;

impl Engine {
    /// Loads what has changed in the directory.
    pub(super) fn load_changes(&mut self, host: &Host, mut changes: Changes) -> Result<(), ThreadEnd> {
        changes.gone.iter().for_each(|file| self.container.gone(file));
        let mut of_sensors = BTreeMap::new();
        for (file, text) in changes.changed {
            let candidate = text.as_deref().map_err(String::clone).and_then(Candidate::read);
            if self.container.takes(&file, text.as_deref(), candidate.is_ok()) {
                self.container.read(&file, text);
                // A sensor may have been in it.
                changes.gone.push(file);
            } else {
                self.container.gone(&file);
                of_sensors.insert(file, candidate.map(Arc::new));
            }
        }
        self.shared.publish_container(self.container.info());
        self.remove(host, changes.gone)?;
        for (file, latest) in of_sensors {
            self.files.insert(file, SensorFile { latest, problem: None });
        }
        self.load_all(host)
    }

    /// Stops the sensors of files that are gone.
    fn remove(&mut self, host: &Host, gone: Vec<String>) -> Result<(), ThreadEnd> {
        let gone: HashSet<String> = gone.into_iter().collect();
        self.files.retain(|file, _| !gone.contains(file));
        let slots = std::mem::take(&mut self.slots).into_iter();
        let is_gone = |slot: &Slot| slot.home().is_some_and(|running| gone.contains(&running.file));
        let (stopped, kept): (Vec<_>, Vec<_>) = slots.partition(is_gone);
        self.slots = kept;
        let stopped: Vec<&Running> = stopped.iter().filter_map(Slot::home).collect();
        for running in &stopped {
            let (file, sensor) = (running.file.as_str(), running.name());
            tracing::info!(file, sensor, "virtual sensor removed; its table stays");
        }
        stop(host, &stopped)
    }

    /// Loads the files that can run together, and do not run as they are.
    fn load_all(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        let mut problems = self.problems();
        let running = self.home().map(|running| &running.candidate);
        let candidates = self.files.values().filter_map(|file| file.latest.as_ref().ok()).chain(running);
        let names = |candidate: &Arc<Candidate>| {
            let inputs: Vec<_> = candidate.input_devices().collect();
            std::iter::once(candidate.plan.name.clone()).chain(inputs)
        };
        self.outputs = Arc::new(candidates.flat_map(names).collect());
        let outputs = Arc::clone(&self.outputs);
        self.home_mut().for_each(|running| running.outputs = Arc::clone(&outputs));
        let mut loaded = Vec::new();
        for (file, candidate, replaces) in self.files_to_load(&problems) {
            match self.load(host, &file, candidate, replaces)? {
                Ok(running) => loaded.push(running),
                Err(reason) => drop(problems.insert(file, reason)),
            }
        }
        self.run_loaded(host, loaded)?;
        let runs: HashSet<String> = self.home().map(|running| running.file.clone()).collect();
        for (file, state) in &mut self.files {
            let problem = problems.remove(file);
            if let Some(reason) = problem.as_ref().filter(|problem| Some(*problem) != state.problem.as_ref())
            {
                let then = if runs.contains(file.as_str()) {
                    "the sensor continues as it was"
                } else {
                    "the sensor does not run"
                };
                let directory = self.directory.path().display();
                tracing::warn!(file, %directory, "virtual sensor not loaded, {then}: {reason}");
            }
            state.problem = problem;
        }
        self.readers = Readers::of(self.home());
        self.shared.select(self.home().flat_map(selectors_of), &self.outputs, self.fields.wanted());
        self.unwant(host);
        self.publish_external();
        self.publish_outputs(host)?;
        self.published = None;
        Ok(())
    }

    /// Why files cannot be loaded.
    fn problems(&self) -> BTreeMap<String, String> {
        let mut nodes = Vec::new();
        let mut faults = BTreeMap::new();
        let by_file = self.by_file();
        for (file, state) in &self.files {
            let running = by_file.get(file.as_str());
            let candidate = match (&state.latest, running) {
                (Ok(candidate), _) => candidate,
                (Err(fault), running) => {
                    faults.insert(file.clone(), fault.clone());
                    let Some(running) = running else { continue };
                    &running.candidate
                }
            };
            let name = candidate.plan.name.as_str();
            nodes.push(Node {
                file,
                name,
                locals: candidate.locals().collect(),
                // One that has its own name is refused for that when it is loaded.
                devices: candidate.devices().filter(|device| *device != name).collect(),
                runs: running.is_some_and(|running| running.name() == name),
            });
        }
        let mut problems = refusals(&nodes);
        problems.extend(faults);
        problems
    }

    /// The files without a problem that do not run as they are, and whether a sensor runs from the file.
    fn files_to_load(&self, problems: &BTreeMap<String, String>) -> Vec<(String, Arc<Candidate>, bool)> {
        let by_file = self.by_file();
        let to_load = |(file, state): (&String, &SensorFile)| {
            let candidate = state.latest.as_ref().ok()?;
            let running = by_file.get(file.as_str());
            let is_same = running.is_some_and(|running| running.candidate.digest == candidate.digest);
            let is_loaded = is_same || problems.contains_key(file);
            (!is_loaded).then(|| (file.clone(), Arc::clone(candidate), running.is_some()))
        };
        self.files.iter().filter_map(to_load).collect()
    }

    /// Lets loaded sensors run. A crash before the first checkpoint must not make a sensor begin again, so all are stored first, in few
    /// commits.
    fn run_loaded(&mut self, host: &Host, mut loaded: Vec<Running>) -> Result<(), ThreadEnd> {
        checkpoint(host, &mut loaded)?;
        for running in loaded {
            for (series, cursor) in &running.cursors {
                self.shared.want(*series, cursor.id, self.fields.wanted());
            }
            let (file, sensor) = (running.file.as_str(), running.name());
            tracing::info!(file, sensor, "virtual sensor loaded");
            // Its first turns evaluate what the store has.
            self.slots.push(Slot::new(running, &self.inbox_bytes));
        }
        Ok(())
    }

    /// Loads a file. The sensor that ran from it continues until then. The new one does not run yet.
    fn load(
        &mut self,
        host: &Host,
        file: &str,
        candidate: Arc<Candidate>,
        replaces: bool,
    ) -> Result<Result<Running, String>, ThreadEnd> {
        let columns = candidate.plan.sources().flat_map(|(_, source)| &source.columns[1..]);
        match Arc::make_mut(&mut self.fields).add(columns) {
            Ok(true) => self.want_again(),
            Ok(false) => {}
            Err(reason) => return Ok(Err(reason)),
        }
        let destination = match Destination::of(host, &candidate) {
            Ok(destination) => destination,
            Err(reason) => return Ok(Err(reason)),
        };
        let external = match external_sources(host, &candidate) {
            Ok(external) => external,
            Err(reason) => return Ok(Err(reason)),
        };
        let is_of_file = |slot: &Slot| slot.home().is_some_and(|running| running.file == file);
        let old = replaces.then(|| self.slots.iter().position(is_of_file)).flatten();
        if let Some(at) = old {
            // The new one continues from where the old one is.
            let mut old = self.slots.remove(at);
            checkpoint(host, old.home_mut())?;
            if let Some(old) = old.home() {
                match old.name() == candidate.plan.name {
                    true => forget_sources(host, old),
                    false => stop(host, &[old])?,
                }
            }
        }
        self.select(&candidate);
        begin_followers(host, &sensor_output(&candidate, self.container.storage()), destination.series)?;
        let from = (file, candidate);
        Running::start(host, &self.fields, &self.outputs, from, destination, external).map(Ok)
    }

    /// Wants the devices of one more sensor.
    fn select(&self, candidate: &Candidate) {
        let new = candidate.plan.sources().map(|(id, _)| SourceSelector::of(&candidate.plan, id));
        self.shared.select_more(new, &self.outputs, self.fields.wanted());
    }

    /// Wants the fields of all sensors of the series that they read.
    fn want_again(&self) {
        for (series, cursor) in self.home().flat_map(|running| &running.cursors) {
            self.shared.want(*series, cursor.id, self.fields.wanted());
        }
    }

    /// Wants no more of series that no sensor reads.
    fn unwant(&self, host: &Host) {
        let reads = |device| {
            let device = host.registry().device_by_id(device);
            device.is_some_and(|device| {
                let mut places = self.readers.of_device(&device.name).into_iter();
                places.any(|at| {
                    self.slots[at].home().is_none_or(|running| !running.sources_of(&device).is_empty())
                })
            })
        };
        self.shared.tap.unwant(|_, wanted| !reads(wanted.device));
    }

    /// Shows connectors the sources whose elements come from outside.
    fn publish_external(&self) {
        let sources = self.home().flat_map(|running| running.external.iter().cloned());
        self.shared.connectors.publish(sources.collect());
    }

    /// Shows connectors the outputs of the sensors that run. The storage of the container may be another one now.
    fn publish_outputs(&self, host: &Host) -> Result<(), ThreadEnd> {
        let default = self.container.storage();
        let mut outputs = Vec::new();
        for running in self.home() {
            let output = sensor_output(&running.candidate, default);
            begin_followers(host, &output, running.destination.series)?;
            outputs.push(Arc::new(output));
        }
        self.shared.followers.publish(outputs);
        Ok(())
    }

    /// Whether the registry has changed.
    pub(super) fn has_other_devices(&self, host: &Host) -> bool {
        host.registry().generation() != self.generation
    }

    /// Finds devices that were renamed or moved, and forgets those that are gone.
    pub(super) fn compare_with_registry(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        self.generation = host.registry().generation();
        self.drop_without_device(host)?;
        let Self { slots, readers, shared, fields, .. } = self;
        for running in slots.iter_mut().filter_map(Slot::home_mut) {
            running.cursors.retain(|_, cursor| host.registry().device_by_id(cursor.id).is_some());
            for device in running.devices(host) {
                let Some(series) = series_of(host, &device) else { continue };
                // Rows of a series that no sensor has seen are new, and the tap has them.
                let is_unseen = !readers.has(series) && shared.tap.wanted(series).is_some();
                if running.cursors.contains_key(&series) || is_unseen {
                    continue;
                }
                shared.want(series, device.id, fields.wanted());
                let newest = newest(&*host.store, series).map_err(ThreadEnd::failed)?;
                running.add_device(&device, series, newest.unwrap_or(i64::MIN));
            }
        }
        // A name that was taken may be free.
        self.load_all(host)
    }

    /// Drops sensors with a device that was deleted, renamed or moved; they are loaded again, and get another one.
    fn drop_without_device(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        for at in (0..self.slots.len()).rev() {
            let Some(running) = self.slots[at].home_mut() else { continue };
            let device = host.registry().device_by_id(running.destination.device.id);
            let is_its_own = |device: &Device| {
                device.name == running.plan.name && device.profile.name == running.plan.name
            };
            let has_input = |source: &Arc<ExternalSource>| {
                let found = host.registry().device_by_id(source.device.id);
                let own = &source.device;
                found.is_some_and(|found| found.name == own.name && found.profile.table == own.profile.table)
            };
            let has_inputs = running.external.iter().all(has_input);
            if !has_inputs || !device.is_some_and(|device| is_its_own(&device)) {
                checkpoint(host, Some(running))?;
                self.slots.remove(at);
            }
        }
        Ok(())
    }
}

/// Ends sensors that run no more, and forgets how far they were.
fn stop(host: &Host, stopped: &[&Running]) -> Result<(), ThreadEnd> {
    let mut batch = WriteBatch::new();
    for running in stopped {
        host.sensors.metrics.forget(running.name());
        forget_sources(host, running);
        batch.delete(SENSORS, running.name().as_bytes().to_vec());
    }
    if !batch.is_empty() {
        durable::commit(host, &batch)?;
    }
    stopped.iter().try_for_each(|running| forget_followers(host, running.name()))
}

fn forget_sources(host: &Host, running: &Running) {
    for source in &running.external {
        host.sensors.metrics.forget_source(&source.sensor, &source.source());
    }
}

fn selectors_of(running: &Running) -> impl Iterator<Item = SourceSelector> {
    running.sources.iter().map(|source| source.selector.clone())
}
