//! The turns of the thread that evaluates virtual sensors.
//!
//! Invariants:
//! 1. Rows are evaluated only after they are durable; what is made of rows that the store gives is appended only after they are.
//! 2. A row is evaluated once by each sensor, in the order of its device (`cursor`).
//! 3. When the store is busy the thread waits. It drops nothing.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kv::WriteBatch;
use model::{PanicEndsProcess, SeriesId};

use super::candidate::SensorFile;
use super::container::ContainerFiles;
use super::directory::Directory;
use super::durable;
use super::evaluate::InputRow;
use super::fields_read::FieldsRead;
use super::history_rows;
use super::info::SensorState;
use super::limits::{CHECKPOINT_INTERVAL, DIRECTORY_INTERVAL, PUBLISH_INTERVAL, TICK_INTERVAL};
use super::record::SENSORS;
use super::running::{Running, absent, described};
use super::shared::{Infos, Sensors};
use super::start::series_of;
use super::wishes::Outputs;
use crate::hub::Hub;
use crate::stopped::Stopped;
use crate::taps::{Taken, TapRow};

/// The evaluation of the sensors of a directory.
pub(super) struct Engine {
    pub(super) shared: Arc<Sensors>,
    pub(super) directory: Directory,
    /// The files of the directory.
    pub(super) files: BTreeMap<String, SensorFile>,
    /// The file of the container.
    pub(super) container: ContainerFiles,
    pub(super) running: Vec<Running>,
    /// The places of the sensors that read a series.
    pub(super) readers: HashMap<SeriesId, Vec<usize>>,
    pub(super) fields: FieldsRead,
    pub(super) outputs: Arc<Outputs>,
    looked_at: Option<Instant>,
    checkpointed: Instant,
    /// When callers were shown the sensors; `None` if the files have changed since.
    pub(super) published: Option<Instant>,
    /// The generation of the registry that the devices were compared with.
    pub(super) generation: u64,
}

impl Engine {
    /// Starts the thread.
    pub(super) fn start(hub: &Arc<Hub>, directory: PathBuf) -> JoinHandle<()> {
        let shared = Arc::clone(&hub.sensors);
        let mut engine = Self {
            shared,
            directory: Directory::new(directory),
            files: BTreeMap::new(),
            container: ContainerFiles::default(),
            running: Vec::new(),
            readers: HashMap::new(),
            fields: FieldsRead::new(),
            outputs: Arc::default(),
            looked_at: None,
            checkpointed: Instant::now(),
            published: None,
            generation: hub.registry.generation(),
        };
        let hub = Arc::downgrade(hub);
        let run = move || {
            let _guard = PanicEndsProcess::begin();
            if let Err(Stopped::Failed(error)) = engine.run(&hub) {
                // Nothing is lost: the rows are read again after the next start.
                tracing::error!(%error, "virtual sensors are not evaluated any more until the next start");
                engine.shared.tap.unwant(|_, _| true);
                engine.publish_end(&error.to_string());
            }
        };
        std::thread::Builder::new()
            .name("virtual-sensors".into())
            .spawn(run)
            .expect("BUG: a thread name without zero bytes and enough memory at start-up")
    }

    /// Evaluates until the tap is stopped or the hub is gone.
    fn run(&mut self, hub: &Weak<Hub>) -> Result<(), Stopped> {
        loop {
            let Some(hub_now) = hub.upgrade() else { return Ok(()) };
            self.turn(&hub_now)?;
            if self.shared.tap.is_stopped() {
                // The next start has little to evaluate again.
                return self.checkpoint(&hub_now);
            }
            drop(hub_now);
            self.shared.tap.wait(self.pause());
        }
    }

    fn turn(&mut self, hub: &Hub) -> Result<(), Stopped> {
        if is_due(self.looked_at, DIRECTORY_INTERVAL) {
            self.look(hub)?;
            self.looked_at = Some(Instant::now());
        }
        let taken = self.shared.tap.take_durable(&*hub.store);
        self.take_rows(hub, &taken)?;
        for series in &taken.lost {
            self.read_again(hub, *series)?;
        }
        let now = Instant::now();
        for running in &mut self.running {
            running.tick(hub, now)?;
            running.output.flush(hub, &mut running.destination)?;
        }
        if self.checkpointed.elapsed() >= CHECKPOINT_INTERVAL {
            self.compare_with_registry(hub)?;
            self.checkpoint(hub)?;
            self.running.iter_mut().for_each(|running| history_rows::trim(hub, running));
        }
        if is_due(self.published, PUBLISH_INTERVAL) && (self.published.is_none() || self.has_news()) {
            self.publish(hub);
        }
        Ok(())
    }

    fn pause(&self) -> Duration {
        if self.running.iter().any(Running::needs_ticks) || self.has_news() {
            return TICK_INTERVAL;
        }
        DIRECTORY_INTERVAL
    }

    /// Whether a sensor has done something that is not shown yet.
    fn has_news(&self) -> bool {
        self.running.iter().any(|running| running.counts() != running.counted)
    }

    fn take_rows(&mut self, hub: &Hub, taken: &Taken) -> Result<(), Stopped> {
        let mut values = Vec::new();
        for row in taken.rows() {
            if !self.readers.contains_key(&row.series()) {
                self.adopt(hub, row.series())?;
            }
            values.clear();
            values.extend(row.values());
            self.take_row(hub, row, &values)?;
        }
        Ok(())
    }

    fn take_row<'a>(
        &mut self,
        hub: &Hub,
        row: TapRow<'a>,
        values: &[(u16, model::ValueRef<'a>)],
    ) -> Result<(), Stopped> {
        let (series, ts, sequence) = (row.series(), row.ts(), row.sequence());
        let Self { readers, running, .. } = self;
        for at in readers.get(&series).into_iter().flatten() {
            running[*at].take(hub, InputRow { series, ts, sequence, values })?;
        }
        Ok(())
    }

    /// Reads a series that is new here, all of it.
    fn adopt(&mut self, hub: &Hub, series: SeriesId) -> Result<(), Stopped> {
        let wanted = self.shared.tap.wanted(series);
        let device = wanted.and_then(|wanted| hub.registry.device_by_id(wanted.device));
        let Some(device) = device.filter(|device| series_of(hub, device) == Some(series)) else {
            return Ok(());
        };
        // A door may have found it before the present fields were wanted.
        self.shared.want(series, device.id, self.fields.wanted());
        for (at, running) in self.running.iter_mut().enumerate() {
            if running.add_device(&device, series, i64::MIN) {
                self.readers.entry(series).or_default().push(at);
            }
        }
        if !self.readers.contains_key(&series) {
            // No sensor reads it; a sensor that is loaded later finds it.
            self.shared.tap.unwant(|other, _| other == series);
        }
        self.evaluate_stored(hub, series)
    }

    /// Evaluates the rows of a series that found no room in the tap.
    fn read_again(&mut self, hub: &Hub, series: SeriesId) -> Result<(), Stopped> {
        hub.metrics.virtual_sensors.rereads.inc();
        if self.readers.contains_key(&series) {
            return self.evaluate_stored(hub, series);
        }
        self.adopt(hub, series)
    }

    fn evaluate_stored(&mut self, hub: &Hub, series: SeriesId) -> Result<(), Stopped> {
        let Self { readers, running, fields, .. } = self;
        for at in readers.get(&series).into_iter().flatten() {
            running[*at].evaluate_stored(hub, fields, Some(series))?;
        }
        Ok(())
    }

    /// Stores how far the sensors have evaluated.
    pub(super) fn checkpoint(&mut self, hub: &Hub) -> Result<(), Stopped> {
        self.checkpointed = Instant::now();
        for running in &mut self.running {
            checkpoint(hub, running)?;
        }
        Ok(())
    }

    /// Shows the sensors to callers and in the metrics.
    fn publish(&mut self, hub: &Hub) {
        self.published = Some(Instant::now());
        for running in &mut self.running {
            let counts = running.counts();
            hub.metrics.virtual_sensors.count(running.name(), &running.counted, &counts);
            running.counted = counts;
        }
        let failed = self.files.len().saturating_sub(self.running.len());
        hub.metrics.virtual_sensors.sensors(self.running.len(), failed);
        self.shared.publish(self.infos(None));
    }

    /// Shows that no sensor runs any more.
    fn publish_end(&self, error: &str) {
        self.shared.publish(self.infos(Some(error)));
        self.shared.connectors.publish(Vec::new());
        self.shared.followers.publish(Vec::new());
    }

    fn infos(&self, end: Option<&str>) -> Infos {
        let mut infos = Infos::new();
        for (name, file) in &self.files {
            let running = self.running.iter().find(|running| running.file == *name);
            let reason = end.or(file.problem.as_deref());
            let failed = |reason: &str| SensorState::Failed { reason: format!("{name}: {reason}") };
            let mut info = match (running, &file.latest) {
                (Some(running), _) => running.info(file.problem.as_deref()),
                (None, Ok(candidate)) => {
                    described(name, candidate, failed(reason.unwrap_or("not loaded yet")))
                }
                (None, Err(fault)) => absent(name, failed(fault)),
            };
            if let Some(end) = end {
                info.state = failed(end);
            }
            infos.insert((info.name.to_lowercase(), name.clone()), Arc::new(info));
        }
        infos
    }
}

/// Stores how far a sensor has evaluated, after its rows are durable.
pub(super) fn checkpoint(hub: &Hub, running: &mut Running) -> Result<(), Stopped> {
    running.output.flush(hub, &mut running.destination)?;
    if !std::mem::replace(&mut running.is_changed, false) {
        return Ok(());
    }
    running.output.wait_until_durable(hub)?;
    let mut batch = WriteBatch::new();
    hub.sensors.followers.put_changed(running.name(), &mut batch);
    batch.put(SENSORS, running.name().as_bytes().to_vec(), running.record().encode());
    durable::commit(hub, &batch)
}

fn is_due(last: Option<Instant>, interval: Duration) -> bool {
    last.is_none_or(|last| last.elapsed() >= interval)
}
