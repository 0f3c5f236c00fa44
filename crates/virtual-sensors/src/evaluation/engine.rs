//! The passes of the thread that gives virtual sensors what they evaluate.
//!
//! Invariants:
//! 1. Rows are evaluated only after they are durable; what is made of rows that the store gives is appended only after they are.
//! 2. A row is evaluated once by each sensor, in the order of its device (`cursor`).
//! 3. When the store is busy the turns wait. They drop nothing.
//! 4. Sensors are added, removed and compared with the registry only while none has a turn, so a place means one sensor as long as it has
//!    a turn (`turns`).

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hub::ThreadEnd;
use model::PanicEndsProcess;

use super::checkpoint::checkpoint;
use super::fields_read::FieldsRead;
use super::history_rows;
use super::lanes::Lanes;
use super::readers::Readers;
use super::running::{Running, absent, described};
use super::slot::Slot;
use super::turn::{Turn, TurnDone};
use crate::files::Changes;
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
    /// Changes of the directory that wait until no sensor has a turn.
    pub(super) changes: Changes,
    /// The files of the directory.
    pub(super) files: BTreeMap<String, SensorFile>,
    /// The file of the container.
    pub(super) container: ContainerFiles,
    pub(super) slots: Vec<Slot>,
    /// The places of the sensors by what they read.
    pub(super) readers: Readers,
    /// The places of the sensors that are ready for a turn.
    pub(super) ready: Vec<usize>,
    pub(super) lanes: Lanes<Turn, TurnDone>,
    /// Whether heavy sensors get no turns, because a change waits until all sensors are here.
    pub(super) is_held: bool,
    /// Bytes of rows that wait for all sensors.
    pub(super) inbox_bytes: Arc<AtomicUsize>,
    /// Whether a sensor has taken a row since the engine looked for news to show.
    pub(super) has_taken: bool,
    /// When the clocks of the sensors were looked at.
    ticked: Option<Instant>,
    pub(super) fields: Arc<FieldsRead>,
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
        let tap = Arc::clone(&shared.tap);
        let mut engine = Self {
            shared,
            directory: Directory::new(directory),
            changes: Changes::default(),
            files: BTreeMap::new(),
            container: ContainerFiles::default(),
            slots: Vec::new(),
            readers: Readers::default(),
            ready: Vec::new(),
            lanes: Lanes::new(Turn::make, move || tap.wake_up()),
            is_held: false,
            inbox_bytes: Arc::default(),
            has_taken: false,
            ticked: None,
            fields: Arc::new(FieldsRead::new()),
            outputs: Arc::default(),
            looked_at: None,
            checkpointed: Instant::now(),
            published: None,
            generation: host.registry().generation(),
        };
        let host = Arc::downgrade(host);
        let run = move || {
            let _guard = PanicEndsProcess::begin();
            let end = engine.run(&host);
            // Turns that still run end soon.
            engine.shared.end.store(true, Ordering::Relaxed);
            if let Err(ThreadEnd::Failed(error)) = end {
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
            if self.shared.ends() && !self.shared.tap.is_stopped() {
                // Nobody has the sensors any more.
                return Ok(());
            }
            self.pass(&host_now)?;
            if self.shared.tap.is_stopped() {
                // The next start has little to evaluate again.
                self.wait_for_all(&host_now)?;
                return self.checkpoint(&host_now);
            }
            drop(host_now);
            self.shared.tap.wait(self.pause());
        }
    }

    fn pass(&mut self, host: &Arc<Host>) -> Result<(), ThreadEnd> {
        self.collect(host)?;
        self.follow_changes(host)?;
        let taken = self.shared.tap.take_durable(&*host.store);
        self.queue_rows(host, &taken)?;
        for series in &taken.lost {
            host.sensors.metrics.rereads.inc();
            self.mark(host, *series);
        }
        // With many sensors a look at each of them is too much work for every pass.
        if is_due(self.ticked, TICK_INTERVAL) {
            self.ticked = Some(Instant::now());
            self.list_clocks();
        }
        self.give_turns(host)?;
        if self.checkpointed.elapsed() >= CHECKPOINT_INTERVAL {
            self.checkpoint(host)?;
            self.home_mut().for_each(|running| history_rows::trim(host, running));
        }
        if is_due(self.published, PUBLISH_INTERVAL) {
            self.has_taken = false;
            if self.has_news() {
                self.publish(host);
            }
        }
        Ok(())
    }

    /// Follows the directory and the registry, as soon as no sensor has a turn. The sensors of the light lane go on meanwhile.
    fn follow_changes(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        if self.changes.is_empty() && is_due(self.looked_at, DIRECTORY_INTERVAL) {
            self.changes = self.directory.changes();
            self.looked_at = Some(Instant::now());
        }
        // Devices come one after the other: each would be a change.
        let has_waited = self.is_held || self.checkpointed.elapsed() >= CHECKPOINT_INTERVAL;
        let devices_changed = has_waited && self.has_other_devices(host);
        if self.changes.is_empty() && !devices_changed && self.published.is_some() {
            self.is_held = false;
            return Ok(());
        }
        self.recall();
        self.is_held = !self.lanes.is_idle();
        if self.is_held {
            return Ok(());
        }
        if devices_changed {
            self.compare_with_registry(host)?;
        }
        if !self.changes.is_empty() {
            let changes = std::mem::take(&mut self.changes);
            self.load_changes(host, changes)?;
        }
        self.list_all();
        self.publish(host);
        Ok(())
    }

    fn pause(&self) -> Duration {
        let is_ready = |at: &usize| self.slots[*at].home().is_some() && !self.is_held;
        if self.ready.iter().any(is_ready) {
            return Duration::ZERO;
        }
        if self.has_taken || self.home().any(Running::needs_ticks) || self.has_news() {
            return TICK_INTERVAL;
        }
        DIRECTORY_INTERVAL
    }

    /// Whether a sensor has done something that is not shown yet.
    fn has_news(&self) -> bool {
        self.home().any(|running| running.is_unseen || running.counts() != running.counted)
    }

    /// The sensors that have no turn.
    pub(super) fn home(&self) -> impl Iterator<Item = &Running> {
        self.slots.iter().filter_map(Slot::home)
    }

    /// The sensors that have no turn.
    pub(super) fn home_mut(&mut self) -> impl Iterator<Item = &mut Running> {
        self.slots.iter_mut().filter_map(Slot::home_mut)
    }

    /// Stores how far the sensors have evaluated. Those that have a turn follow when they come back.
    pub(super) fn checkpoint(&mut self, host: &Host) -> Result<(), ThreadEnd> {
        self.checkpointed = Instant::now();
        self.slots.iter_mut().for_each(|slot| slot.owes_checkpoint = slot.home().is_none());
        checkpoint(host, self.home_mut())
    }

    /// Shows the sensors to callers and in the metrics. Those that have a turn follow when they come back.
    fn publish(&mut self, host: &Host) {
        let is_first = self.published.is_none();
        self.published = Some(Instant::now());
        let mut changed = Vec::new();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.home_mut().is_some_and(|running| running.count(host, is_first)) {
                changed.push(at);
            }
        }
        let failed = self.files.len().saturating_sub(self.slots.len());
        host.sensors.metrics.sensors(self.slots.len(), failed);
        if is_first {
            return self.shared.publish(self.infos(None));
        }
        let Self { slots, shared, .. } = self;
        shared.change(|infos| {
            changed.into_iter().filter_map(|at| slots[at].home()).for_each(|running| refresh(infos, running));
        });
    }
    /// Shows what a sensor has done that had a turn when the others were shown.
    pub(super) fn publish_one(&mut self, host: &Host, at: usize) {
        let Self { slots, shared, .. } = self;
        let Some(running) = slots[at].home_mut() else { return };
        if running.count(host, false) {
            shared.change(|infos| refresh(infos, running));
        }
    }

    /// Shows that no sensor runs any more.
    fn publish_end(&self, error: &str) {
        self.shared.publish(self.infos(Some(error)));
        self.shared.connectors.publish(Vec::new());
        self.shared.followers.publish(Vec::new());
    }

    /// The sensors that run, by their files.
    pub(super) fn by_file(&self) -> HashMap<&str, &Running> {
        self.home().map(|running| (running.file.as_str(), running)).collect()
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

impl Running {
    /// Counts in the metrics what it has done, if that is new or `always`. Returns whether it has.
    fn count(&mut self, host: &Host, always: bool) -> bool {
        let counts = self.counts();
        let is_unseen = std::mem::take(&mut self.is_unseen);
        if !always && !is_unseen && counts == self.counted {
            return false;
        }
        host.sensors.metrics.count(self.name(), &self.counted, &counts);
        self.counted = counts;
        true
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
