//! Changes of attributes: what a write does to the key-value store, if the limits allow it.

use std::collections::{BTreeMap, BTreeSet};

use kv::{KeyValueStore, WriteBatch};
use model::{Timestamp, Value, name};

use super::attribute_scope::{ATTRIBUTES, AttributeScope};
use super::error::AttributeError;
use super::limits::{
    ATTRIBUTE_KEYS_NAMED_MAX, ATTRIBUTE_VALUE_BYTES_MAX, ATTRIBUTES_BYTES_MAX, ATTRIBUTES_PER_SCOPE_MAX,
};
use super::record;
use super::tally::Tally;
use crate::device_messages::{Attribute, DeviceMessage};

/// A planned change.
#[derive(Debug)]
pub(crate) struct Change {
    /// The writes, which must be done before another change of the same place is planned.
    pub(crate) batch: WriteBatch,
    /// What connections of the device learn if the scope is shared; `None` if nothing changes.
    pub(crate) message: Option<DeviceMessage>,
}

/// Plans to set attributes. Of a key that occurs twice the last value counts. A value that is the same as before is an update too.
///
/// # Errors
/// A rule for keys, or a limit; reads of the store can fail.
pub(crate) fn update(
    kv: &dyn KeyValueStore,
    place: AttributeScope<'_>,
    entries: &[(String, Value)],
    now: Timestamp,
) -> Result<Change, AttributeError> {
    let (change, before, after) = plan_update(kv, place, entries, now)?;
    place.check_growth(before, after)?;
    Ok(change)
}

/// Like [`update`] for attributes that the server itself keeps, for which there is always room.
///
/// # Errors
/// Reads of the store can fail.
pub(crate) fn update_by_server(
    kv: &dyn KeyValueStore,
    place: AttributeScope<'_>,
    entries: &[(String, Value)],
    now: Timestamp,
) -> Result<Change, AttributeError> {
    plan_update(kv, place, entries, now).map(|(change, ..)| change)
}

/// The change, and the tallies before and after it.
fn plan_update(
    kv: &dyn KeyValueStore,
    place: AttributeScope<'_>,
    entries: &[(String, Value)],
    now: Timestamp,
) -> Result<(Change, Tally, Tally), AttributeError> {
    let mut values = BTreeMap::new();
    for (key, value) in entries {
        place.check_key(key)?;
        place.check_value(value)?;
        values.insert(key.as_str(), value);
    }
    let before = place.tally(kv)?;
    let mut tally = before;
    let mut batch = WriteBatch::new();
    for (key, value) in &values {
        let stored = place.key_of(key);
        let encoded = record::encode(value.as_ref(), now);
        if let Some(old) = kv.get(ATTRIBUTES, &stored)? {
            tally.remove(key.len() + old.len());
        }
        tally.add(key.len() + encoded.len());
        batch.put(ATTRIBUTES, stored, encoded);
    }
    place.put_tally(tally, &mut batch);
    let entry = |(key, value): (&str, &Value)| Attribute { key: key.into(), value: value.clone(), ts: now };
    let entries: Vec<Attribute> = values.into_iter().map(entry).collect();
    let message = (!entries.is_empty()).then_some(DeviceMessage::AttributesChanged { entries });
    Ok((Change { batch, message }, before, tally))
}

/// Plans to delete attributes. Keys that do not exist are ignored.
///
/// # Errors
/// Too many keys; reads of the store can fail.
pub(crate) fn removal(
    kv: &dyn KeyValueStore,
    place: AttributeScope<'_>,
    keys: &[String],
) -> Result<Change, AttributeError> {
    place.check_named(keys)?;
    let mut tally = place.tally(kv)?;
    let mut batch = WriteBatch::new();
    let mut deleted = Vec::new();
    for key in keys.iter().collect::<BTreeSet<_>>() {
        place.check_key(key)?;
        let stored = place.key_of(key);
        if let Some(old) = kv.get(ATTRIBUTES, &stored)? {
            tally.remove(key.len() + old.len());
            batch.delete(ATTRIBUTES, stored);
            deleted.push(key.as_str().into());
        }
    }
    if !deleted.is_empty() {
        place.put_tally(tally, &mut batch);
    }
    let message = (!deleted.is_empty()).then_some(DeviceMessage::AttributesDeleted { keys: deleted });
    Ok(Change { batch, message })
}

impl AttributeScope<'_> {
    fn tally(self, kv: &dyn KeyValueStore) -> Result<Tally, AttributeError> {
        match kv.get(ATTRIBUTES, &self.prefix())? {
            Some(record) => Tally::decode(&record).ok_or_else(|| self.damaged()),
            None => Ok(Tally::default()),
        }
    }

    fn put_tally(self, tally: Tally, batch: &mut WriteBatch) {
        if tally.count == 0 {
            batch.delete(ATTRIBUTES, self.prefix());
        } else {
            batch.put(ATTRIBUTES, self.prefix(), tally.encode());
        }
    }

    /// Refuses a change that leads above a limit. What is above it already, by what the server keeps itself, may stay and shrink.
    fn check_growth(self, before: Tally, after: Tally) -> Result<(), AttributeError> {
        if after.count > before.count {
            self.within(
                "the number of attributes",
                after.count,
                ATTRIBUTES_PER_SCOPE_MAX,
                "ATTRIBUTES_PER_SCOPE_MAX",
            )?;
        }
        if after.bytes > before.bytes {
            self.within(
                "the bytes of all attributes",
                after.bytes,
                ATTRIBUTES_BYTES_MAX,
                "ATTRIBUTES_BYTES_MAX",
            )?;
        }
        Ok(())
    }

    /// Refuses more named keys than a request may have.
    pub(super) fn check_named(self, keys: &[String]) -> Result<(), AttributeError> {
        let limit = ATTRIBUTE_KEYS_NAMED_MAX;
        self.within("the number of named keys", keys.len(), limit, "ATTRIBUTE_KEYS_NAMED_MAX")
    }

    fn check_key(self, key: &str) -> Result<(), AttributeError> {
        let entity = || self.owner.to_string();
        name::check_key(key).map_err(|error| AttributeError::Key {
            entity: entity(),
            scope: self.scope,
            error,
        })?;
        match key.trim().is_empty() {
            true => Err(AttributeError::BlankKey { entity: entity(), scope: self.scope }),
            false => Ok(()),
        }
    }

    fn check_value(self, value: &Value) -> Result<(), AttributeError> {
        let (Value::String(text) | Value::Json(text)) = value else { return Ok(()) };
        let limit = ATTRIBUTE_VALUE_BYTES_MAX;
        self.within("the bytes of a value", text.len(), limit, "ATTRIBUTE_VALUE_BYTES_MAX")
    }

    fn within(
        self,
        what: &'static str,
        actual: usize,
        limit: usize,
        name: &'static str,
    ) -> Result<(), AttributeError> {
        if actual <= limit {
            return Ok(());
        }
        let entity = self.owner.to_string();
        Err(AttributeError::OverLimit { entity, scope: self.scope, what, actual, limit, name })
    }

    /// The error of a record that is something else than expected.
    pub(super) fn damaged(self) -> AttributeError {
        AttributeError::Damaged { entity: self.owner.to_string(), scope: self.scope }
    }
}
