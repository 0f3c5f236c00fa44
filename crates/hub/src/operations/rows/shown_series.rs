//! The series that readers find under an entity: that of a device or an asset, or through an entity view some keys and times of it.

use std::borrow::Cow;
use std::sync::Arc;

use model::{TimeRange, Timestamp};
use serde::Deserialize;
use store::{LatestValue, Order};

use crate::caller::Caller;
use crate::error::Error;
use crate::history::{Aggregation, HistoryRequest, Interval};
use crate::hub::Hub;
use crate::registry::{Entity, EntityId, EntityView, RegistryError};
use crate::series_owner::SeriesOwner;

/// A series as it is shown under an entity.
#[derive(Debug, Clone)]
pub struct ShownSeries {
    owner: SeriesOwner<'static>,
    view: Option<Window>,
}

/// What an entity view shows.
#[derive(Debug, Clone)]
struct Window {
    /// The keys; all if there is none.
    keys: Vec<String>,
    range: TimeRange,
}

/// ThingsBoard's `TelemetryEntityView`, without its attributes.
#[derive(Debug, Default, Deserialize)]
struct ShownKeys {
    timeseries: Option<Vec<String>>,
}

impl ShownSeries {
    /// The device or asset that owns the series. A caller who may read the entity view may read the series through it, even if the
    /// device is assigned to another customer.
    pub fn owner(&self) -> &SeriesOwner<'static> {
        &self.owner
    }

    /// The part of a request that is shown.
    pub fn shown<'a>(&self, request: &'a HistoryRequest) -> Cow<'a, HistoryRequest> {
        let Some(window) = &self.view else { return Cow::Borrowed(request) };
        let TimeRange { start, end } = request.range;
        let range = TimeRange::new(start.max(window.range.start), end.min(window.range.end));
        let keys = request.keys.iter().filter(|key| window.shows(key)).cloned().collect();
        Cow::Owned(HistoryRequest { keys, range, ..request.clone() })
    }
}

impl Window {
    fn of(view: &EntityView) -> Self {
        // The registry takes any JSON as keys; what is not of this form shows all of them.
        let keys: ShownKeys =
            view.keys.as_deref().and_then(|keys| serde_json::from_str(keys).ok()).unwrap_or_default();
        let bound = |millis: i64| (millis > 0).then(|| Timestamp::from_millis(millis)).flatten();
        let start = bound(view.start_ms).unwrap_or(Timestamp::MIN);
        // The end is inside.
        let end = bound(view.end_ms).map_or(Timestamp::MAX, |end| end.saturating_add_micros(1));
        Self { keys: keys.timeseries.unwrap_or_default(), range: TimeRange::new(start, end) }
    }

    fn shows(&self, key: &str) -> bool {
        self.keys.is_empty() || self.keys.iter().any(|shown| shown == key)
    }
}

impl Hub {
    /// The series that a caller reads under an entity.
    ///
    /// # Errors
    /// Entities of this kind have no time series, the caller does not see it, or the entity of a view is gone.
    pub fn shown_series(&self, caller: &Caller, id: EntityId) -> Result<ShownSeries, RegistryError> {
        match self.visible_entity(caller, id)? {
            Entity::EntityView(view) => self.series_of_view(&view),
            entity => Ok(ShownSeries { owner: self.owner_of(&entity)?, view: None }),
        }
    }

    pub(crate) fn series_of_view(&self, view: &Arc<EntityView>) -> Result<ShownSeries, RegistryError> {
        let owner = self.owner_of(&self.registry.entity(view.tenant, view.entity)?)?;
        let owner = SeriesOwner { customer: view.customer, ..owner };
        Ok(ShownSeries { owner, view: Some(Window::of(view)) })
    }

    /// The newest shown values of some keys, or of all. It may read files: call it on a thread that may block.
    ///
    /// # Errors
    /// The caller lacks the permission; reads of the store can fail.
    pub fn shown_latest(
        &self,
        caller: &Caller,
        shown: &ShownSeries,
        keys: Option<&[String]>,
    ) -> Result<Vec<LatestValue>, Error> {
        let Some(series) = self.find_series_of(caller, shown.owner())? else { return Ok(Vec::new()) };
        let mut found = self.latest(caller, series, keys)?;
        let Some(window) = &shown.view else { return Ok(found) };
        found.retain(|latest| window.shows(&latest.key) && latest.ts >= window.range.start);
        for latest in found.iter_mut().filter(|latest| latest.ts >= window.range.end) {
            let request = HistoryRequest {
                keys: vec![latest.key.clone()],
                range: window.range,
                aggregation: Aggregation::None,
                interval: Interval::WholeRange,
                limit: 1,
                order: Order::Descending,
            };
            let before = self
                .history(caller, series, &request)?
                .pop()
                .and_then(|(_, timed_values)| timed_values.into_iter().next());
            if let Some((ts, value)) = before {
                (latest.ts, latest.value) = (ts, value);
            }
        }
        found.retain(|latest| window.range.contains(latest.ts));
        Ok(found)
    }
}
