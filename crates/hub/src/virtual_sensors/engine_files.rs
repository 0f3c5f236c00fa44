//! The engine follows the files of the directory, and the devices of the registry.

use std::collections::BTreeMap;
use std::sync::Arc;

use kv::WriteBatch;

use super::candidate::{Candidate, SensorFile};
use super::destination::{Destination, external_sources};
use super::durable;
use super::engine::{Engine, checkpoint};
use super::external::ExternalSource;
use super::followers::{begin_followers, forget_followers};
use super::graph::{Node, refusals};
use super::record::SENSORS;
use super::reread::newest;
use super::running::Running;
use super::sensor_output::sensor_output;
use super::start::series_of;
use super::wishes::Wish;
use crate::hub::Hub;
use crate::registry::Device;
use crate::stopped::Stopped;

impl Engine {
    /// Looks at the directory, and loads what has changed.
    pub(super) fn look(&mut self, hub: &Hub) -> Result<(), Stopped> {
        let mut changes = self.directory.changes();
        if changes.is_empty() {
            return Ok(());
        }
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
        for file in &changes.gone {
            self.files.remove(file);
            if let Some(at) = self.running.iter().position(|running| running.file == *file) {
                tracing::info!(
                    file,
                    sensor = self.running[at].name(),
                    "virtual sensor removed; its table stays"
                );
                self.stop(hub, at)?;
            }
        }
        for (file, latest) in of_sensors {
            self.files.insert(file, SensorFile { latest, problem: None });
        }
        self.load_all(hub)
    }

    /// Loads the files that can run together, and do not run as they are.
    fn load_all(&mut self, hub: &Hub) -> Result<(), Stopped> {
        let mut problems = self.problems();
        let running = self.running.iter().map(|running| &running.candidate);
        let candidates = self.files.values().filter_map(|file| file.latest.as_ref().ok()).chain(running);
        let names = |candidate: &Arc<Candidate>| {
            let inputs: Vec<_> = candidate.input_devices().collect();
            std::iter::once(candidate.plan.name.clone()).chain(inputs)
        };
        self.outputs = Arc::new(candidates.flat_map(names).collect());
        for running in &mut self.running {
            running.outputs = Arc::clone(&self.outputs);
        }
        let files: Vec<(String, Arc<Candidate>)> = self
            .files
            .iter()
            .filter(|(file, _)| !problems.contains_key(*file))
            .filter_map(|(file, state)| Some((file.clone(), Arc::clone(state.latest.as_ref().ok()?))))
            .collect();
        for (file, candidate) in files {
            let runs = self
                .running
                .iter()
                .any(|running| running.file == file && running.candidate.digest == candidate.digest);
            if !runs && let Err(reason) = self.load(hub, &file, candidate)? {
                problems.insert(file, reason);
            }
        }
        for (file, state) in &mut self.files {
            let problem = problems.remove(file);
            if let Some(reason) = problem.as_ref().filter(|problem| Some(*problem) != state.problem.as_ref())
            {
                let runs = self.running.iter().any(|running| running.file == *file);
                let then = if runs { "the sensor goes on as it was" } else { "the sensor does not run" };
                let directory = self.directory.path().display();
                tracing::warn!(file, %directory, "virtual sensor not loaded, {then}: {reason}");
            }
            state.problem = problem;
        }
        self.index_readers();
        self.publish_external();
        self.publish_outputs(hub)?;
        self.published = None;
        Ok(())
    }

    /// Why files cannot be loaded.
    fn problems(&self) -> BTreeMap<String, String> {
        let mut nodes = Vec::new();
        let mut faults = BTreeMap::new();
        for (file, state) in &self.files {
            let running = self.running.iter().find(|running| running.file == *file);
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

    /// Loads a file. The sensor that ran from it goes on until then.
    fn load(
        &mut self,
        hub: &Hub,
        file: &str,
        candidate: Arc<Candidate>,
    ) -> Result<Result<(), String>, Stopped> {
        let columns = candidate.plan.sources().flat_map(|(_, source)| &source.columns[1..]);
        match self.fields.add(columns) {
            Ok(true) => self.want_again(),
            Ok(false) => {}
            Err(reason) => return Ok(Err(reason)),
        }
        let destination = match Destination::of(hub, &candidate) {
            Ok(destination) => destination,
            Err(reason) => return Ok(Err(reason)),
        };
        let external = match external_sources(hub, &candidate) {
            Ok(external) => external,
            Err(reason) => return Ok(Err(reason)),
        };
        if let Some(at) = self.running.iter().position(|running| running.file == file) {
            // The new one goes on from where the old one is.
            checkpoint(hub, &mut self.running[at])?;
            match self.running[at].name() == candidate.plan.name {
                true => forget_sources(hub, &self.running.remove(at)),
                false => self.stop(hub, at)?,
            }
        }
        self.wish(&candidate);
        let name = candidate.plan.name.clone();
        begin_followers(hub, &sensor_output(&candidate, self.container.storage()), destination.series)?;
        let from = (file, candidate);
        let mut running = Running::start(hub, &self.fields, &self.outputs, from, destination, external)?;
        // A crash before the first checkpoint must not make the sensor begin anew.
        checkpoint(hub, &mut running)?;
        for (series, cursor) in &running.cursors {
            self.shared.want(*series, cursor.id, self.fields.wanted());
        }
        // Rows that came until the tap wanted them.
        running.evaluate_stored(hub, &self.fields, None)?;
        self.running.push(running);
        tracing::info!(file, sensor = name, "virtual sensor loaded");
        Ok(Ok(()))
    }

    /// Stops a sensor, and forgets how far it was.
    fn stop(&mut self, hub: &Hub, at: usize) -> Result<(), Stopped> {
        let stopped = self.running.remove(at);
        hub.metrics.virtual_sensors.forget(stopped.name());
        forget_sources(hub, &stopped);
        let mut batch = WriteBatch::new();
        batch.delete(SENSORS, stopped.name().as_bytes().to_vec());
        durable::commit(hub, &batch)?;
        forget_followers(hub, stopped.name())?;
        let wishes = self.running.iter().flat_map(wishes_of).collect();
        self.shared.wish(wishes, &self.outputs, self.fields.wanted());
        self.index_readers();
        self.unwant(hub);
        Ok(())
    }

    /// Wants the devices of all sensors, and of one more.
    fn wish(&self, candidate: &Candidate) {
        let new = candidate.plan.sources().map(|(id, _)| Wish::of(&candidate.plan, id));
        let wishes = self.running.iter().flat_map(wishes_of).chain(new).collect();
        self.shared.wish(wishes, &self.outputs, self.fields.wanted());
    }

    /// Wants the fields of all sensors of the series that they read.
    fn want_again(&self) {
        for (series, cursor) in self.running.iter().flat_map(|running| &running.cursors) {
            self.shared.want(*series, cursor.id, self.fields.wanted());
        }
    }

    /// Wants no more of series that no sensor reads.
    fn unwant(&self, hub: &Hub) {
        let reads = |device| {
            let device = hub.registry.device_by_id(device);
            device.is_some_and(|device| {
                self.running.iter().any(|running| !running.sources_of(&device).is_empty())
            })
        };
        self.shared.tap.unwant(|_, wanted| !reads(wanted.device));
    }

    /// Shows connectors the sources whose elements come from outside.
    fn publish_external(&self) {
        let sources = self.running.iter().flat_map(|running| running.external.iter().cloned());
        self.shared.connectors.publish(sources.collect());
    }

    /// Shows connectors the outputs of the sensors that run. The storage of the container may be another one now.
    fn publish_outputs(&self, hub: &Hub) -> Result<(), Stopped> {
        let default = self.container.storage();
        let mut outputs = Vec::new();
        for running in &self.running {
            let output = sensor_output(&running.candidate, default);
            begin_followers(hub, &output, running.destination.series)?;
            outputs.push(Arc::new(output));
        }
        self.shared.followers.publish(outputs);
        Ok(())
    }

    fn index_readers(&mut self) {
        self.readers.clear();
        for (at, running) in self.running.iter().enumerate() {
            for series in running.cursors.keys() {
                self.readers.entry(*series).or_default().push(at);
            }
        }
    }

    /// Finds devices that were renamed or moved, and forgets those that are gone.
    pub(super) fn compare_with_registry(&mut self, hub: &Hub) -> Result<(), Stopped> {
        let generation = hub.registry.generation();
        if generation == self.generation {
            return Ok(());
        }
        self.generation = generation;
        self.drop_without_device(hub)?;
        for running in &mut self.running {
            running.cursors.retain(|_, cursor| hub.registry.device_by_id(cursor.id).is_some());
            for device in running.devices(hub) {
                let Some(series) = series_of(hub, &device) else { continue };
                // Rows of a series that no sensor has seen are new, and the tap has them.
                let is_unseen =
                    !self.readers.contains_key(&series) && self.shared.tap.wanted(series).is_some();
                if running.cursors.contains_key(&series) || is_unseen {
                    continue;
                }
                self.shared.want(series, device.id, self.fields.wanted());
                let newest = newest(&*hub.store, series).map_err(Stopped::failed)?;
                running.add_device(&device, series, newest.unwrap_or(i64::MIN));
            }
        }
        self.unwant(hub);
        // A name that was taken may be free.
        self.load_all(hub)
    }

    /// Drops sensors with a device that was deleted, renamed or moved; they are loaded again, and get another one.
    fn drop_without_device(&mut self, hub: &Hub) -> Result<(), Stopped> {
        for at in (0..self.running.len()).rev() {
            let running = &mut self.running[at];
            let device = hub.registry.device_by_id(running.destination.device.id);
            let is_its_own = |device: &Device| {
                device.name == running.plan.name && device.profile.name == running.plan.name
            };
            let has_input = |source: &Arc<ExternalSource>| {
                let found = hub.registry.device_by_id(source.device.id);
                let own = &source.device;
                found.is_some_and(|found| found.name == own.name && found.profile.table == own.profile.table)
            };
            let has_inputs = running.external.iter().all(has_input);
            if !has_inputs || !device.is_some_and(|device| is_its_own(&device)) {
                checkpoint(hub, running)?;
                self.running.remove(at);
            }
        }
        Ok(())
    }
}

fn forget_sources(hub: &Hub, running: &Running) {
    for source in &running.external {
        hub.metrics.virtual_sensors.forget_source(&source.sensor, &source.source());
    }
}

fn wishes_of(running: &Running) -> impl Iterator<Item = Wish> {
    running.sources.iter().map(|source| source.wish.clone())
}
