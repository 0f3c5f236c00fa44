//! The sources whose elements come from outside, as connectors see them, and what the connectors report.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

use super::pushes::Pushes;
use crate::info::SensorInfo;
use crate::info::{ExternalSource, SourceState};

/// The sources whose elements come from outside, sorted by device.
pub type ExternalSources = Arc<[Arc<ExternalSource>]>;

/// The sources of the sensors that run, and what their connectors have reported.
#[derive(Debug)]
pub(crate) struct Connectors {
    pub(crate) sources: watch::Sender<ExternalSources>,
    pub(crate) states: Mutex<HashMap<Uuid, SourceState>>,
    pub(crate) pushes: Arc<Pushes>,
}

impl Default for Connectors {
    fn default() -> Self {
        Self { sources: watch::Sender::new(Arc::new([])), states: Mutex::default(), pushes: Arc::default() }
    }
}

impl Connectors {
    /// Shows the sources of the sensors that run now.
    pub(crate) fn publish(&self, mut sources: Vec<Arc<ExternalSource>>) {
        sources.sort_by(|a, b| a.device.name.cmp(&b.device.name));
        self.sources.send_if_modified(|known| {
            let is_new = known[..] != sources[..];
            if is_new {
                *known = sources.into();
            }
            is_new
        });
        let devices: HashSet<Uuid> = self.sources.borrow().iter().map(|source| source.device.id).collect();
        self.states.lock().retain(|device, _| devices.contains(device));
    }

    /// Adds to a sensor what its connectors have reported.
    pub(crate) fn show(&self, info: &mut Arc<SensorInfo>) {
        if info.sources.is_empty() {
            return;
        }
        let states = self.states.lock();
        for source in &mut Arc::make_mut(info).sources {
            source.state = states.get(&source.device_id).cloned().unwrap_or_default();
        }
    }
}
