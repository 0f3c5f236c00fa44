//! What the hub shares with the thread of the sensors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use model::{SeriesId, TableName};
use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use super::connectors::Connectors;
use super::container::ContainerInfo;
use super::followers::Followers;
use super::info::SensorInfo;
use super::wishes::{Outputs, Wish};
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::taps::{Tap, WantedKeys};

/// What the hub shares with the thread of the sensors.
#[derive(Debug)]
pub(crate) struct Sensors {
    pub(crate) tap: Arc<Tap>,
    // A door reads it for every series that it looks up, and locks the wishes only if there are some.
    has_wishes: AtomicBool,
    wishes: RwLock<Wishes>,
    infos: RwLock<Infos>,
    pub(super) connectors: Connectors,
    container: RwLock<Option<Arc<ContainerInfo>>>,
    pub(super) followers: Followers,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// The series of a device, which a door has looked up.
pub(crate) struct FoundSeries<'a> {
    pub(crate) series: SeriesId,
    pub(crate) tenant: Uuid,
    pub(crate) device: Uuid,
    pub(crate) name: &'a str,
    pub(crate) profile: Uuid,
    pub(crate) table: &'a TableName,
}

/// Sensors by their names in lower case, and then by their files.
pub(super) type Infos = BTreeMap<(String, String), Arc<SensorInfo>>;

#[derive(Debug, Default)]
struct Wishes {
    wishes: Vec<Wish>,
    outputs: Arc<Outputs>,
    keys: Option<Arc<WantedKeys>>,
}

impl Sensors {
    /// Without sensors, with a tap of this many bytes.
    pub(crate) fn new(tap_bytes_max: usize, metrics: &Metrics) -> Self {
        Self {
            tap: Arc::new(Tap::new(tap_bytes_max, metrics.virtual_sensors.queued_bytes.clone())),
            has_wishes: AtomicBool::new(false),
            wishes: RwLock::default(),
            infos: RwLock::default(),
            connectors: Connectors::default(),
            container: RwLock::default(),
            followers: Followers::default(),
            thread: Mutex::default(),
        }
    }

    /// A door has looked up a series: the tap gets it if a sensor reads it.
    pub(crate) fn found_series(&self, registry: &Registry, found: &FoundSeries<'_>) {
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
            && wishes.wishes.iter().any(fits)
        {
            self.tap.want(found.series, found.device, keys);
        }
    }

    /// Wants the series of these devices from now on.
    pub(super) fn wish(&self, wishes: Vec<Wish>, outputs: &Arc<Outputs>, keys: &Arc<WantedKeys>) {
        let mut all = self.wishes.write();
        self.has_wishes.store(!wishes.is_empty(), Ordering::Release);
        *all = Wishes { wishes, outputs: Arc::clone(outputs), keys: Some(Arc::clone(keys)) };
    }

    /// Wants a series.
    pub(super) fn want(&self, series: SeriesId, device: Uuid, keys: &Arc<WantedKeys>) {
        self.tap.want(series, device, keys);
    }

    /// Shows callers the sensors.
    pub(super) fn publish(&self, infos: Infos) {
        *self.infos.write() = infos;
    }

    /// All sensors, sorted by name.
    pub(super) fn infos(&self) -> Vec<Arc<SensorInfo>> {
        let mut infos: Vec<_> = self.infos.read().values().cloned().collect();
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
