//! The state that the thread of the sensors shares with callers, and with the doors by way of the hub.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hub::Metrics;
use hub::registry::{Profile, Registry};
use hub::taps::{FoundSeries, SeriesObserver, Tap, WantedKeys};
use model::SeriesId;
use parking_lot::RwLock;
use uuid::Uuid;

use super::connectors::Connectors;
use super::source_selector::{Outputs, SourceSelector};
use crate::files::ContainerInfo;
use crate::followers::Followers;
use crate::info::SensorInfo;
use crate::metrics::VirtualSensorMetrics;

/// The state that the thread of the sensors shares with callers.
#[derive(Debug)]
pub(crate) struct Sensors {
    pub(crate) tap: Arc<Tap>,
    pub(crate) metrics: VirtualSensorMetrics,
    // A door reads it for every series that it looks up, and locks the selectors only if there are some.
    has_selectors: AtomicBool,
    selectors: RwLock<Selectors>,
    infos: RwLock<Infos>,
    pub(crate) connectors: Connectors,
    container: RwLock<Option<Arc<ContainerInfo>>>,
    pub(crate) followers: Followers,
    /// Bytes that may wait for all sensors beside the tap.
    pub(crate) inboxes_bytes_max: usize,
    /// Whether evaluations are to end in their middle: the server stops.
    pub(crate) end: Arc<AtomicBool>,
}

/// Sensors by their names in lower case, and then by their files.
pub(crate) type Infos = BTreeMap<(String, String), Arc<SensorInfo>>;

#[derive(Debug, Default)]
struct Selectors {
    /// Those of one device, by its name.
    by_device: HashMap<String, Vec<SourceSelector>>,
    /// Those with a pattern.
    patterns: Vec<SourceSelector>,
    outputs: Arc<Outputs>,
    keys: Option<Arc<WantedKeys>>,
}

impl Sensors {
    /// Without sensors, with a tap and inboxes of this many bytes. Their metrics are among all metrics from now on.
    pub(crate) fn new(tap_bytes_max: usize, inboxes_bytes_max: usize, all_metrics: &Metrics) -> Self {
        let metrics = VirtualSensorMetrics::default();
        all_metrics.add(|registry| metrics.register(registry));
        Self {
            tap: Arc::new(Tap::new(tap_bytes_max, metrics.queued_bytes.clone())),
            metrics,
            has_selectors: AtomicBool::new(false),
            selectors: RwLock::default(),
            infos: RwLock::default(),
            connectors: Connectors::default(),
            container: RwLock::default(),
            followers: Followers::default(),
            inboxes_bytes_max,
            end: Arc::default(),
        }
    }

    /// Whether evaluations are to end.
    pub(crate) fn ends(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// Wants the series of these devices from now on, and of no others.
    pub(crate) fn select(
        &self,
        selectors: impl Iterator<Item = SourceSelector>,
        outputs: &Arc<Outputs>,
        keys: &Arc<WantedKeys>,
    ) {
        let mut all = self.selectors.write();
        *all = Selectors::default();
        all.add(selectors, outputs, keys);
        self.has_selectors.store(!all.is_empty(), Ordering::Release);
    }

    /// Wants the series of these devices also.
    pub(crate) fn select_more(
        &self,
        selectors: impl Iterator<Item = SourceSelector>,
        outputs: &Arc<Outputs>,
        keys: &Arc<WantedKeys>,
    ) {
        let mut all = self.selectors.write();
        all.add(selectors, outputs, keys);
        self.has_selectors.store(!all.is_empty(), Ordering::Release);
    }

    pub(crate) fn want(&self, series: SeriesId, device: Uuid, keys: &Arc<WantedKeys>) {
        self.tap.want(series, device, keys);
    }

    /// Shows callers the sensors.
    pub(crate) fn publish(&self, infos: Infos) {
        *self.infos.write() = infos;
    }

    /// Changes what callers see of sensors. Callers wait for it.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Infos)) {
        change(&mut self.infos.write());
    }

    /// All sensors, sorted by name.
    pub(crate) fn infos(&self) -> Vec<Arc<SensorInfo>> {
        let infos = self.infos.read().values().cloned().collect();
        self.shown(infos)
    }

    /// The sensors with a name in lower case, sorted by file.
    pub(crate) fn infos_named(&self, name: &str) -> Vec<Arc<SensorInfo>> {
        // No file sorts before the empty one.
        let from = (name.to_owned(), String::new());
        let all = self.infos.read();
        let named = all.range(from..).take_while(|((known, _), _)| known == name);
        let infos = named.map(|(_, info)| Arc::clone(info)).collect();
        drop(all);
        self.shown(infos)
    }

    fn shown(&self, mut infos: Vec<Arc<SensorInfo>>) -> Vec<Arc<SensorInfo>> {
        infos.iter_mut().for_each(|info| self.connectors.show(info));
        infos.iter_mut().for_each(|info| self.followers.show(info));
        infos
    }

    /// Shows callers the file of the container.
    pub(crate) fn publish_container(&self, info: Option<ContainerInfo>) {
        *self.container.write() = info.map(Arc::new);
    }

    /// The file of the container.
    pub(crate) fn container(&self) -> Option<Arc<ContainerInfo>> {
        self.container.read().clone()
    }
}

impl SeriesObserver for Sensors {
    /// A door has looked up a series: the tap gets it if a sensor reads it.
    fn found_series(&self, registry: &Registry, found: &FoundSeries<'_>) {
        if !self.has_selectors.load(Ordering::Acquire) || found.tenant != registry.default_tenant() {
            return;
        }
        if self.tap.wanted(found.series).is_some() {
            return;
        }
        let profile = || {
            let profile = registry.find::<Profile>(found.tenant, found.profile);
            profile.map(|profile| profile.name.clone()).unwrap_or_default()
        };
        let selectors = self.selectors.read();
        let fits =
            |selector: &SourceSelector| selector.fits(found.name, found.table, profile, &selectors.outputs);
        if let Some(keys) = &selectors.keys
            && selectors.may_be_for(found.name).any(fits)
        {
            self.tap.want(found.series, found.device, keys);
        }
    }
}

impl Selectors {
    fn add(
        &mut self,
        selectors: impl Iterator<Item = SourceSelector>,
        outputs: &Arc<Outputs>,
        keys: &Arc<WantedKeys>,
    ) {
        for selector in selectors {
            match selector.is_of_one().map(str::to_owned) {
                Some(device) => self.by_device.entry(device).or_default().push(selector),
                None => self.patterns.push(selector),
            }
        }
        self.outputs = Arc::clone(outputs);
        self.keys = Some(Arc::clone(keys));
    }

    fn is_empty(&self) -> bool {
        self.by_device.is_empty() && self.patterns.is_empty()
    }

    /// The selectors that may be for a device of this name.
    fn may_be_for(&self, name: &str) -> impl Iterator<Item = &SourceSelector> {
        self.by_device.get(name).into_iter().flatten().chain(&self.patterns)
    }
}
