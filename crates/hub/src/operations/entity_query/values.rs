//! Reads the values of keys of one entity after another.

use std::collections::{BTreeSet, HashMap};

use model::{Timestamp, Value};
use store::LatestValue;

use crate::attributes::{Owner, Scope};
use crate::caller::Caller;
use crate::entity_query::limits::QUERY_VALUES_MAX;
use crate::entity_query::{EntityKey, EntityQueryError, KeyKind, TimedValue, device_of, field, within};
use crate::hub::Hub;
use crate::registry::Entity;

/// Reads the values of some keys.
#[derive(Debug)]
pub(crate) struct KeyReader<'a> {
    hub: &'a Hub,
    caller: &'a Caller,
    keys: &'a [EntityKey],
    /// The places of each key in the answer.
    places: HashMap<(KeyKind, &'a str), Vec<usize>>,
    /// The keys of time series, each once.
    series: Vec<String>,
    /// For each scope the keys of attributes to look up, each once.
    attributes: [(Scope, Vec<String>); 3],
}

impl<'a> KeyReader<'a> {
    /// A reader of these keys.
    pub(crate) fn new(hub: &'a Hub, caller: &'a Caller, keys: &'a [EntityKey]) -> Self {
        let named = |wanted: &dyn Fn(KeyKind) -> bool| -> Vec<String> {
            let found: BTreeSet<&String> =
                keys.iter().filter(|key| wanted(key.kind)).map(|key| &key.key).collect();
            found.into_iter().cloned().collect()
        };
        let series = named(&|kind| kind == KeyKind::TimeSeries);
        let attributes = Scope::ALL.map(|scope| (scope, named(&|kind| kind.scopes().contains(&scope))));
        let mut places: HashMap<_, Vec<usize>> = HashMap::new();
        for (place, key) in keys.iter().enumerate() {
            places.entry((key.kind, key.key.as_str())).or_default().push(place);
        }
        Self { hub, caller, keys, places, series, attributes }
    }

    /// The values of an entity, one for each key; `None` for a key without one. Properties of the entity have the time `now`.
    pub(crate) fn read(
        &self,
        entity: &Entity,
        now: Timestamp,
    ) -> Result<Vec<Option<TimedValue>>, EntityQueryError> {
        let mut values: Vec<Option<TimedValue>> = self
            .keys
            .iter()
            .map(|key| match key.kind {
                KeyKind::EntityField => field(entity, &key.key).into_value().map(|value| (now, value)),
                KeyKind::Constant => Some((now, Value::String(key.key.clone()))),
                _ => None,
            })
            .collect();
        if !self.series.is_empty() {
            for found in self.latest(entity)? {
                self.put(&mut values, KeyKind::TimeSeries, &found.key, (found.ts, found.value));
            }
        }
        let owner = Owner::from(entity);
        let named = self.attributes.iter().filter(|(_, keys)| !keys.is_empty());
        for (scope, keys) in named.filter(|(scope, _)| owner.scopes().contains(scope)) {
            for found in self.hub.attributes(self.caller, owner, *scope, Some(keys))? {
                for kind in [KeyKind::of_scope(*scope), KeyKind::Attribute] {
                    self.put(&mut values, kind, &found.key, (found.ts, found.value.clone()));
                }
            }
        }
        Ok(values)
    }

    /// The newest values of a device, or those that an entity view shows.
    fn latest(&self, entity: &Entity) -> Result<Vec<LatestValue>, EntityQueryError> {
        if let Entity::EntityView(view) = entity {
            // The entity of a view may be gone.
            let Ok(shown) = self.hub.series_of_view(view) else { return Ok(Vec::new()) };
            return Ok(self.hub.shown_latest(self.caller, &shown, Some(&self.series))?);
        }
        let Some(device) = device_of(entity) else { return Ok(Vec::new()) };
        let Some(series) = self.hub.find_series_of(self.caller, device)? else { return Ok(Vec::new()) };
        Ok(self.hub.latest(self.caller, series, Some(&self.series))?)
    }

    /// Puts a value in the places of its key, unless a newer one is there.
    fn put(&self, values: &mut [Option<TimedValue>], kind: KeyKind, key: &str, timed_value: TimedValue) {
        for place in self.places.get(&(kind, key)).into_iter().flatten() {
            let place = &mut values[*place];
            if place.as_ref().is_none_or(|(ts, _)| *ts < timed_value.0) {
                *place = Some(timed_value.clone());
            }
        }
    }
}

/// The values that a query has read.
#[derive(Debug, Default)]
pub(crate) struct Work {
    values: usize,
}

impl Work {
    /// Counts a read of some keys of some entities, before it is done.
    pub(crate) fn count(&mut self, entities: usize, keys: &[EntityKey]) -> Result<(), EntityQueryError> {
        let stored = keys.iter().filter(|key| key.is_stored()).count();
        self.values = self.values.saturating_add(entities.saturating_mul(stored));
        let limit = ("QUERY_VALUES_MAX", QUERY_VALUES_MAX);
        let remedy = "name fewer entities in the filter, or use fewer keys in conditions and in the order";
        within("the number of values that the query reads", self.values, limit, remedy)
    }
}
