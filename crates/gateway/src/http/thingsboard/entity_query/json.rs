//! Entities with their values as JSON (ThingsBoard's `PageData<EntityData>`).

use hub::EntityId;
use hub::entity_query::{EntityKey, EntityPage, KeyKind, TimedValue};
use model::{Timestamp, Value};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::http::shapes::entities::PageJson;
use crate::http::tools::json::{Object, Sequence, TsValue, entity};

/// A page of entities.
pub(crate) struct EntityPageJson<'a> {
    pub(crate) found: &'a EntityPage,
}

impl Serialize for EntityPageJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let EntityPage { keys, page, now } = self.found;
        let rows = || {
            page.data.iter().map(|row| EntityDataJson {
                id: row.entity.id(),
                latest: Latest { keys, values: &row.values, now: *now },
                series: Object(no_entries),
                aggregates: Object(no_entries),
            })
        };
        let answer = PageJson {
            data: Sequence(rows),
            total_pages: page.total_pages,
            total_elements: page.total_elements,
            has_next: page.has_next,
        };
        answer.serialize(serializer)
    }
}

/// An entity with values: ThingsBoard's `EntityData`.
pub(crate) struct EntityDataJson<L, T, A> {
    pub(crate) id: EntityId,
    /// Values by kind and key.
    pub(crate) latest: L,
    /// Lists of values by key.
    pub(crate) series: T,
    /// Aggregates by the ids that a command gave them.
    pub(crate) aggregates: A,
}

impl<L: Serialize, T: Serialize, A: Serialize> Serialize for EntityDataJson<L, T, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut data = serializer.serialize_map(Some(4))?;
        data.serialize_entry("entityId", &entity(self.id.kind.name(), self.id.id))?;
        data.serialize_entry("latest", &self.latest)?;
        data.serialize_entry("timeseries", &self.series)?;
        data.serialize_entry("aggLatest", &self.aggregates)?;
        data.end()
    }
}

/// The entries of an empty object.
pub(crate) fn no_entries() -> std::iter::Empty<((), ())> {
    std::iter::empty()
}

/// Values by kind and key: `{"TIME_SERIES":{"speed":{"ts":1,"value":"5"}}}`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Latest<'a> {
    /// Sorted by kind.
    pub(crate) keys: &'a [EntityKey],
    /// A value for each key; a key without one has an empty text at the time 0, as in ThingsBoard.
    pub(crate) values: &'a [Option<TimedValue>],
    /// The time of absent properties.
    pub(crate) now: Timestamp,
}

impl Serialize for Latest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let empty = Value::String(String::new());
        let mut kinds = serializer.serialize_map(None)?;
        let mut rest = self.values;
        for keys in self.keys.chunk_by(|one, next| one.kind == next.kind) {
            let (values, after) = rest.split_at(keys.len());
            rest = after;
            let absent_at = match keys[0].kind {
                KeyKind::EntityField => self.now,
                _ => Timestamp::from_micros(0),
            };
            let of_kind = Object(|| {
                keys.iter().zip(values).map(|(key, timed_value)| {
                    let (ts, value) =
                        timed_value.as_ref().map_or((absent_at, &empty), |(ts, value)| (*ts, value));
                    (&key.key, TsValue { ts, value: Some(value), strict: false })
                })
            });
            kinds.serialize_entry(keys[0].kind.name(), &of_kind)?;
        }
        kinds.end()
    }
}
