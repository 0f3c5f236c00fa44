//! What listens to the way in: taps, which get rows, and observers, which learn of series. Ingest knows only these two lists.

use std::sync::Arc;

use model::{SeriesId, TableName};
use store::{ProgressWatcher, Store};
use uuid::Uuid;

use super::append_list::AppendList;
use super::tap::Tap;
use crate::registry::Registry;

/// Learns which series doors look up, so that a tap can want them.
pub trait SeriesObserver: Send + Sync {
    /// A door has looked up the series of a device, and may append to it from now on. The call is on the way of the first message of a
    /// connection: it must not block.
    fn found_series(&self, registry: &Registry, found: &FoundSeries<'_>);
}

/// The series of a device, which a door has looked up.
#[derive(Debug, Clone, Copy)]
pub struct FoundSeries<'a> {
    pub series: SeriesId,
    /// The tenant of the device.
    pub tenant: Uuid,
    /// The id of the device.
    pub device: Uuid,
    /// The name of the device.
    pub name: &'a str,
    /// The id of the profile of the device.
    pub profile: Uuid,
    /// The table of the series.
    pub table: &'a TableName,
}

/// The taps and the observers. Both lists only grow.
#[derive(Default)]
pub(crate) struct Listeners {
    taps: AppendList<Arc<Tap>>,
    observers: AppendList<Arc<dyn SeriesObserver>>,
}

impl Listeners {
    /// A tap gets rows from now on, and the store wakes its reader.
    pub(crate) fn add_tap(&self, store: &dyn Store, tap: &Arc<Tap>) {
        store.watch(Arc::clone(tap) as Arc<dyn ProgressWatcher>);
        self.taps.push(Arc::clone(tap));
    }

    /// An observer learns of series from now on.
    pub(crate) fn add_observer(&self, observer: Arc<dyn SeriesObserver>) {
        self.observers.push(observer);
    }

    /// The taps, in the order in which they were added.
    pub(crate) fn taps(&self) -> impl Iterator<Item = &Tap> {
        self.taps.iter().map(|tap| &**tap)
    }

    /// Tells the observers of a series.
    pub(crate) fn found_series(&self, registry: &Registry, found: &FoundSeries<'_>) {
        self.observers.iter().for_each(|observer| observer.found_series(registry, found));
    }
}
