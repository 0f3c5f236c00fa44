//! Entities and their values in messages (ThingsBoard's `EntityData`).

use hub::EntityId;
use hub::entity_query::{EntityKey, KeyKind, TimedValue};
use hub::live::Update;
use hub::registry::Page;
use model::Timestamp;
use serde::Serialize;
use serde::ser::Serializer;

use super::entity_read::{Compared, EntityValues};
use super::queries::RowChange;
use crate::http::shapes::entities::PageJson;
use crate::http::thingsboard::entity_query::{EntityDataJson, Latest, no_entries};
use crate::http::tools::json::{Object, Sequence, TsValue};

/// Entities with the values that were read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) ids: &'a [EntityId],
    pub(super) keys: &'a [EntityKey],
    pub(super) values: &'a [EntityValues],
    pub(super) now: Timestamp,
}

/// A page of entities.
pub(super) struct PageRows<'a> {
    pub(super) rows: Rows<'a>,
    pub(super) page: &'a Page<()>,
}

/// New values of entities.
pub(super) struct ChangedRows<'a>(pub(super) &'a [RowChange<'a>]);

/// Attributes of an entity that have changed.
pub(super) struct ChangedAttributes<'a> {
    pub(super) id: EntityId,
    pub(super) keys: &'a [EntityKey],
    pub(super) values: &'a [Option<TimedValue>],
    pub(super) now: Timestamp,
}

impl Serialize for ChangedAttributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, keys, values, now } = *self;
        let (series, aggregates) = (Object(no_entries), Object(no_entries));
        EntityDataJson { id, latest: Latest { keys, values, now }, series, aggregates }.serialize(serializer)
    }
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Rows { ids, keys, values, now } = *self;
        let rows = || {
            ids.iter().zip(values).map(move |(id, values)| EntityDataJson {
                id: *id,
                latest: Latest { keys, values: &values.latest, now },
                // ThingsBoard sends the newest first.
                series: Object(|| {
                    values.series.iter().map(|(key, timed_values)| (key, Newest(timed_values)))
                }),
                aggregates: Object(|| values.aggregates.iter().map(|(id, compared)| (id, Both(compared)))),
            })
        };
        Sequence(rows).serialize(serializer)
    }
}

impl Serialize for PageRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Page { total_pages, total_elements, has_next, .. } = *self.page;
        PageJson { data: self.rows, total_pages, total_elements, has_next }.serialize(serializer)
    }
}

impl Serialize for ChangedRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = || {
            self.0.iter().map(|change| EntityDataJson {
                id: change.id,
                latest: Object(|| {
                    let kind = (!change.latest.is_empty()).then_some(KeyKind::TimeSeries.name());
                    kind.into_iter().map(|kind| {
                        (kind, Object(|| change.latest.iter().map(|(key, update)| (key, point(update)))))
                    })
                }),
                series: Object(|| change.points.iter().map(|(key, updates)| (key, Updates(updates)))),
                aggregates: Object(no_entries),
            })
        };
        Sequence(rows).serialize(serializer)
    }
}

/// Values, newest first, which are kept oldest first.
struct Newest<'a>(&'a [TimedValue]);

impl Serialize for Newest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Sequence(|| self.0.iter().rev().map(timed_value)).serialize(serializer)
    }
}

/// Live values, oldest first.
struct Updates<'a>(&'a [&'a Update]);

impl Serialize for Updates<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Sequence(|| self.0.iter().map(|update| point(update))).serialize(serializer)
    }
}

/// `{"current":{"ts":1,"value":"5"},"previous":null}` (ThingsBoard's `ComparisonTsValue`).
struct Both<'a>(&'a Compared);

impl Serialize for Both<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Compared { current, previous } = self.0;
        let entries = || {
            [("current", current), ("previous", previous)]
                .into_iter()
                .map(|(name, found)| (name, found.as_ref().map(timed_value)))
        };
        Object(entries).serialize(serializer)
    }
}

fn timed_value((ts, value): &TimedValue) -> TsValue<'_> {
    TsValue { ts: *ts, value: Some(value), strict: false }
}

fn point(update: &Update) -> TsValue<'_> {
    TsValue { ts: update.ts, value: Some(&update.value), strict: false }
}
