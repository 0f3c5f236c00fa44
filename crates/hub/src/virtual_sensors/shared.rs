//! What the hub shares with the thread of the sensors.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use model::SeriesId;
use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use super::connectors::Connectors;
use super::container::ContainerInfo;
use super::followers::Followers;
use super::info::SensorInfo;
use super::metrics::VirtualSensorMetrics;
use super::wishes::{Outputs, Wish};
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::taps::{FoundSeries, SeriesObserver, Tap, WantedKeys};

/// What the hub shares with the thread of the sensors.
#[derive(Debug)]
pub(crate) struct Sensors {
    pub(crate) tap: Arc<Tap>,
    pub(super) metrics: VirtualSensorMetrics,
    // A door reads it for every series that it looks up, and locks the wishes only if there are some.
    has_wishes: AtomicBool,
    wishes: RwLock<Wishes>,
    infos: RwLock<Infos>,
    pub(super) connectors: Connectors,
    container: RwLock<Option<Arc<ContainerInfo>>>,
    pub(super) followers: Followers,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// Sensors by their names in lower case, and then by their files.
pub(super) type Infos = BTreeMap<(String, String), Arc<SensorInfo>>;

#[derive(Debug, Default)]
struct Wishes {
    /// Those of one device, by its name.
    by_device: HashMap<String, Vec<Wish>>,
    /// Those with a pattern.
    patterns: Vec<Wish>,
    outputs: Arc<Outputs>,
    keys: Option<Arc<WantedKeys>>,
}

impl Sensors {
    /// Without sensors, with a tap of this many bytes. Their metrics are among all metrics from now on.
    pub(crate) fn new(tap_bytes_max: usize, all_metrics: &Metrics) -> Self {
        let metrics = VirtualSensorMetrics::default();
        all_metrics.add(|registry| metrics.register(registry));
        Self {
            tap: Arc::new(Tap::new(tap_bytes_max, metrics.queued_bytes.clone())),
            metrics,
            has_wishes: AtomicBool::new(false),
            wishes: RwLock::default(),
            infos: RwLock::default(),
            connectors: Connectors::default(),
            container: RwLock::default(),
            followers: Followers::default(),
            thread: Mutex::default(),
        }
    }

    /// Wants the series of these devices from now on, and of no others.
    pub(super) fn wish(
        &self,
        wishes: impl Iterator<Item = Wish>,
        outputs: &Arc<Outputs>,
        keys: &Arc<WantedKeys>,
    ) {
        let mut all = self.wishes.write();
        *all = Wishes::default();
        all.add(wishes, outputs, keys);
        self.has_wishes.store(!all.is_empty(), Ordering::Release);
    }

    /// Wants the series of these devices also.
    pub(super) fn wish_more(
        &self,
        wishes: impl Iterator<Item = Wish>,
        outputs: &Arc<Outputs>,
        keys: &Arc<WantedKeys>,
    ) {
        let mut all = self.wishes.write();
        all.add(wishes, outputs, keys);
        self.has_wishes.store(!all.is_empty(), Ordering::Release);
    }

    /// Wants a series.
    pub(super) fn want(&self, series: SeriesId, device: Uuid, keys: &Arc<WantedKeys>) {
        self.tap.want(series, device, keys);
    }

    /// Shows callers the sensors.
    pub(super) fn publish(&self, infos: Infos) {
        *self.infos.write() = infos;
    }

    /// Changes what callers see of sensors. Callers wait for it.
    pub(super) fn change(&self, change: impl FnOnce(&mut Infos)) {
        change(&mut self.infos.write());
    }

    /// All sensors, sorted by name.
    pub(super) fn infos(&self) -> Vec<Arc<SensorInfo>> {
        let infos = self.infos.read().values().cloned().collect();
        self.shown(infos)
    }

    /// The sensors with a name in lower case, sorted by file.
    pub(super) fn infos_named(&self, name: &str) -> Vec<Arc<SensorInfo>> {
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
    pub(super) fn publish_container(&self, info: Option<ContainerInfo>) {
        *self.container.write() = info.map(Arc::new);
    }

    /// The file of the container.
    pub(super) fn container(&self) -> Option<Arc<ContainerInfo>> {
        self.container.read().clone()
    }
}

impl SeriesObserver for Sensors {
    /// A door has looked up a series: the tap gets it if a sensor reads it.
    fn found_series(&self, registry: &Registry, found: &FoundSeries<'_>) {
        if !self.has_wishes.load(Ordering::Acquire) || found.tenant != registry.default_tenant() {
            return;
        }
        if self.tap.wanted(found.series).is_some() {
            return;
        }
        let profile = || {
            let profile = registry.profile_by_id(found.tenant, found.profile);
            profile.map(|profile| profile.name.clone()).unwrap_or_default()
        };
        let wishes = self.wishes.read();
        let fits = |wish: &Wish| wish.fits(found.name, found.table, profile, &wishes.outputs);
        if let Some(keys) = &wishes.keys
            && wishes.may_be_for(found.name).any(fits)
        {
            self.tap.want(found.series, found.device, keys);
        }
    }
}

impl Wishes {
    fn add(&mut self, wishes: impl Iterator<Item = Wish>, outputs: &Arc<Outputs>, keys: &Arc<WantedKeys>) {
        for wish in wishes {
            match wish.is_of_one().map(str::to_owned) {
                Some(device) => self.by_device.entry(device).or_default().push(wish),
                None => self.patterns.push(wish),
            }
        }
        self.outputs = Arc::clone(outputs);
        self.keys = Some(Arc::clone(keys));
    }

    fn is_empty(&self) -> bool {
        self.by_device.is_empty() && self.patterns.is_empty()
    }

    /// The wishes that may be for a device of this name.
    fn may_be_for(&self, name: &str) -> impl Iterator<Item = &Wish> {
        self.by_device.get(name).into_iter().flatten().chain(&self.patterns)
    }
}
