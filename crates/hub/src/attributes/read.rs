//! Reads attributes.

use std::collections::BTreeSet;

use kv::{Direction, KeyRange, KeyValueStore};

use super::attribute_scope::{ATTRIBUTES, AttributeScope, attribute_in};
use super::error::AttributeError;
use super::record;
use crate::device_messages::Attribute;

/// The attributes of these keys, or all, sorted by key. Keys that do not exist are left out.
///
/// # Errors
/// Too many keys; reads of the store can fail.
pub(crate) fn read(
    kv: &dyn KeyValueStore,
    place: AttributeScope<'_>,
    keys: Option<&[String]>,
) -> Result<Vec<Attribute>, AttributeError> {
    match keys {
        Some(keys) => named(kv, place, keys),
        None => all(kv, place),
    }
}

fn named(
    kv: &dyn KeyValueStore,
    place: AttributeScope<'_>,
    keys: &[String],
) -> Result<Vec<Attribute>, AttributeError> {
    place.check_named(keys)?;
    let mut found = Vec::new();
    for key in keys.iter().filter(|key| !key.is_empty()).collect::<BTreeSet<_>>() {
        if let Some(stored) = kv.get(ATTRIBUTES, &place.key_of(key))? {
            found.push(attribute(place, key, &stored)?);
        }
    }
    Ok(found)
}

fn all(kv: &dyn KeyValueStore, place: AttributeScope<'_>) -> Result<Vec<Attribute>, AttributeError> {
    // The first key is that of the tally.
    let range = KeyRange::prefix(place.prefix()).after(&place.prefix());
    let mut found = Vec::new();
    for record in kv.scan(ATTRIBUTES, &range, Direction::Ascending)? {
        let (key, stored) = record?;
        let key = attribute_in(&key).ok_or_else(|| place.damaged())?;
        found.push(attribute(place, key, &stored)?);
    }
    Ok(found)
}

fn attribute(place: AttributeScope<'_>, key: &str, stored: &[u8]) -> Result<Attribute, AttributeError> {
    let (value, ts) = record::decode(stored).ok_or_else(|| place.damaged())?;
    Ok(Attribute { key: key.into(), value, ts })
}
