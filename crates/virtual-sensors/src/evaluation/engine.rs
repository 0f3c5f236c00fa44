//! The passes of the thread that evaluates virtual sensors.
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

use hub::ThreadEnd;
use hub::taps::{TakenRows, TapRow};
use model::{PanicEndsProcess, SeriesId};

use super::checkpoint::checkpoint;
use super::evaluate::InputRow;
use super::fields_read::FieldsRead;
use super::history_rows;
use super::readers::Readers;
use super::running::{Running, absent, described};
use super::start::series_of;
use crate::files::ContainerFiles;
use crate::files::Directory;
use crate::files::SensorFile;
use crate::host::Host;
use crate::info::SensorState;
use crate::limits::{CHECKPOINT_INTERVAL, DIRECTORY_INTERVAL, PUBLISH_INTERVAL, TICK_INTERVAL};
use crate::shared::Outputs;
use crate::shared::{Infos, Sensors};

/// The evaluation of the sensors of a directory.
pub(crate) struct Engine {
    pub(super) shared: Arc<Sensors>,
    pub(super) directory: Directory,
    /// The files of the directory.
    pub(super) files: BTreeMap<String, SensorFile>,
    /// The file of the container.
    pub(super) container: ContainerFiles,
    pub(super) running: Vec<Running>,
    /// The places of the sensors by what they read.
    pub(super) readers: Readers,
    /// The places of the sensors that have taken rows in this pass.
    took: Vec<usize>,
    /// Whether a sensor has taken a row since the engine looked for news to show.
    has_taken: bool,
    /// When the clocks of the sensors were looked at.
    ticked: Option<Instant>,
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
    pub(crate) fn start(host: &Arc<Host>, directory: PathBuf) -> JoinHandle<()> {
        let shared = Arc::clone(&host.sensors);
        let mut engine = Self {
            shared,
            directory: Directory::new(directory),
            files: BTreeMap::new(),
            container: ContainerFiles::default(),
            running: Vec::new(),
            readers: Readers::default(),
            took: Vec::new(),
            has_taken: false,
            ticked: None,
            fields: FieldsRead::new(),
            outputs: Arc::default(),
            looked_at: None,
            checkpointed: Instant::now(),
            published: None,
            generation: host.registry().generation(),
        };
        let host = Arc::downgrade(host);
        let run = move || {
            let _guard = PanicEndsProcess::begin();
            if let Err(ThreadEnd::Failed(error)) = engine.run(&host) {
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

    /// Evaluates until the tap is stopped or the virtual sensors are gone.
    fn run(&mut self, host: &Weak<Host>) -> Result<(), ThreadEnd> {
        loop {
            let Some(host_now) = host.upgrade() else { return Ok(()) };
            self.pass(&host_now)?;
            if self.shared.tap.is_stopped() {
                // The next start has little to evaluate again.
                return self.checkpoint(&host_now);
            }
            drop(host_now);
            self.shared.tap.wait(self.pause());
        }
    }

    fn pass(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        if is_due(self.looked_at, DIRECTORY_INTERVAL) {
            self.look(host)?;
            self.looked_at = Some(Instant::now());
        }
        let taken = self.shared.tap.take_durable(&*host.store);
        self.take_rows(host, &taken)?;
        for series in &taken.lost {
            self.read_again(host, *series)?;
        }
        self.flush_taken(host)?;
        // With many sensors a look at each of them is too much work for every pass.
        if is_due(self.ticked, TICK_INTERVAL) {
            self.tick(host)?;
        }
        if self.checkpointed.elapsed() >= CHECKPOINT_INTERVAL {
            self.compare_with_registry(host)?;
            self.checkpoint(host)?;
            self.running.iter_mut().for_each(|running| history_rows::trim(host, running));
        }
        if is_due(self.published, PUBLISH_INTERVAL) {
            self.has_taken = false;
            if self.published.is_none() || self.has_news() {
                self.publish(host);
            }
        }
        Ok(())
    }

    /// Appends what the sensors have made that have taken rows in this pass.
    fn flush_taken(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        self.took.sort_unstable();
        self.took.dedup();
        for at in self.took.drain(..) {
            let running = &mut self.running[at];
            running.output.flush(host, &mut running.destination)?;
        }
        Ok(())
    }

    fn tick(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        let now = Instant::now();
        self.ticked = Some(now);
        for running in &mut self.running {
            running.tick(host, now)?;
            running.output.flush(host, &mut running.destination)?;
        }
        Ok(())
    }

    fn pause(&self) -> Duration {
        if self.has_taken || self.running.iter().any(Running::needs_ticks) || self.has_news() {
            return TICK_INTERVAL;
        }
        DIRECTORY_INTERVAL
    }

    /// Whether a sensor has done something that is not shown yet.
    fn has_news(&self) -> bool {
        self.running.iter().any(|running| running.counts() != running.counted)
    }

    fn take_rows(&mut self, host: &Host, taken: &TakenRows) -> Result<(), ThreadEnd> {
        let mut values = Vec::new();
        for row in taken.rows() {
            if !self.readers.has(row.series()) {
                self.adopt(host, row.series())?;
            }
            values.clear();
            values.extend(row.values());
            self.take_row(host, row, &values)?;
        }
        Ok(())
    }

    fn take_row<'a>(
        &mut self,
        host: &Host,
        row: TapRow<'a>,
        values: &[(u16, model::ValueRef<'a>)],
    ) -> Result<(), ThreadEnd> {
        let (series, ts, sequence) = (row.series(), row.ts(), row.sequence());
        let Self { readers, running, took, has_taken, .. } = self;
        for at in readers.of_series(series) {
            running[*at].take(host, InputRow { series, ts, sequence, values })?;
            took.push(*at);
            *has_taken = true;
        }
        Ok(())
    }

    /// Reads a series that is new here, all of it.
    fn adopt(&mut self, host: &Host, series: SeriesId) -> Result<(), ThreadEnd> {
        let wanted = self.shared.tap.wanted(series);
        let device = wanted.and_then(|wanted| host.registry().device_by_id(wanted.device));
        let Some(device) = device.filter(|device| series_of(host, device) == Some(series)) else {
            return Ok(());
        };
        // A door may have found it before the present fields were wanted.
        self.shared.want(series, device.id, self.fields.wanted());
        for at in self.readers.of_device(&device.name) {
            if self.running[at].add_device(&device, series, i64::MIN) {
                self.readers.add(series, at);
            }
        }
        if !self.readers.has(series) {
            // No sensor reads it; a sensor that is loaded later finds it.
            self.shared.tap.unwant(|other, _| other == series);
        }
        self.evaluate_stored(host, series)
    }

    /// Evaluates the rows of a series that found no room in the tap.
    fn read_again(&mut self, host: &Host, series: SeriesId) -> Result<(), ThreadEnd> {
        host.sensors.metrics.rereads.inc();
        if self.readers.has(series) {
            return self.evaluate_stored(host, series);
        }
        self.adopt(host, series)
    }

    fn evaluate_stored(&mut self, host: &Host, series: SeriesId) -> Result<(), ThreadEnd> {
        let Self { readers, running, fields, .. } = self;
        for at in readers.of_series(series) {
            running[*at].evaluate_stored(host, fields, Some(series))?;
        }
        Ok(())
    }

    /// Stores how far the sensors have evaluated.
    pub(super) fn checkpoint(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        self.checkpointed = Instant::now();
        checkpoint(host, &mut self.running)
    }

    /// Shows the sensors to callers and in the metrics.
    fn publish(&mut self, host: &Host) {
        let is_first = self.published.is_none();
        self.published = Some(Instant::now());
        let mut changed = Vec::new();
        for (at, running) in self.running.iter_mut().enumerate() {
            let counts = running.counts();
            let is_unseen = std::mem::replace(&mut running.is_unseen, false);
            if is_first || is_unseen || counts != running.counted {
                host.sensors.metrics.count(running.name(), &running.counted, &counts);
                running.counted = counts;
                changed.push(at);
            }
        }
        let failed = self.files.len().saturating_sub(self.running.len());
        host.sensors.metrics.sensors(self.running.len(), failed);
        if is_first {
            return self.shared.publish(self.infos(None));
        }
        self.shared.change(|infos| changed.into_iter().for_each(|at| refresh(infos, &self.running[at])));
    }

    /// Shows that no sensor runs any more.
    fn publish_end(&self, error: &str) {
        self.shared.publish(self.infos(Some(error)));
        self.shared.connectors.publish(Vec::new());
        self.shared.followers.publish(Vec::new());
    }

    /// The sensors that run, by their files.
    pub(super) fn by_file(&self) -> HashMap<&str, &Running> {
        self.running.iter().map(|running| (running.file.as_str(), running)).collect()
    }

    fn infos(&self, end: Option<&str>) -> Infos {
        let mut infos = Infos::new();
        let by_file = self.by_file();
        for (name, file) in &self.files {
            let running = by_file.get(name.as_str());
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

/// Brings up to date what callers see of a sensor.
fn refresh(infos: &mut Infos, running: &Running) {
    if let Some(info) = infos.get_mut(&(running.name().to_lowercase(), running.file.clone())) {
        running.refresh(Arc::make_mut(info));
    }
}

fn is_due(last: Option<Instant>, interval: Duration) -> bool {
    last.is_none_or(|last| last.elapsed() >= interval)
}
