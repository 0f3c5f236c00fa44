//! The effect of a batch as one write or deletion per key.
//!
//! The engine gives all writes of a batch the same version, so a key must not occur twice in one.

use std::collections::BTreeMap;
use std::path::Path;

use super::failure::read_failure;
use super::generation::{Change, Generation};
use super::snapshot::range_of;
use crate::limits::{OPERATION_BYTES, RANGE_KEYS_MAX, SPACES_MAX};
use crate::{Key, KvError, Operation, Space, Value, WriteBatch};

/// Does the operations in their order. A deletion of a range becomes a deletion of each of its keys, so the effect can be repeated
/// later.
pub(super) fn resolve(
    generation: &Generation,
    directory: &Path,
    batch: &WriteBatch,
) -> Result<Vec<Change>, KvError> {
    let mut changes: BTreeMap<(Space, Key), Option<Value>> = BTreeMap::new();
    let mut deleted = 0;
    for (space, operation) in batch.operations() {
        match operation {
            Operation::Put(key, value) => {
                changes.insert((*space, key.clone()), Some(value.clone()));
            }
            Operation::Delete(key) => {
                changes.insert((*space, key.clone()), None);
            }
            Operation::DeleteIf(key, value) => {
                let place = (*space, key.clone());
                let has_value = match (changes.get(&place), generation.known(*space)) {
                    (Some(changed), _) => changed.as_ref() == Some(value),
                    (None, Some(keyspace)) => {
                        let found = keyspace.get(key).map_err(|error| read_failure(directory, error))?;
                        found.is_some_and(|found| *found == **value)
                    }
                    (None, None) => false,
                };
                if has_value {
                    changes.insert(place, None);
                }
            }
            Operation::DeleteRange(range) if range.is_empty() => {}
            Operation::DeleteRange(range) => {
                for ((of, key), value) in changes.range_mut((*space, range.from().clone())..) {
                    if of != space || !range.contains(key) {
                        break;
                    }
                    *value = None;
                }
                let Some(keyspace) = generation.known(*space) else { continue };
                for found in keyspace.range(range_of(range)) {
                    let key = found.key().map_err(|error| read_failure(directory, error))?;
                    deleted += 1;
                    KvError::check_limit("keys of deleted ranges", deleted, RANGE_KEYS_MAX)?;
                    changes.insert((*space, key.into()), None);
                }
            }
        }
    }
    let changes: Vec<Change> = changes.into_iter().map(|((space, key), value)| (space, key, value)).collect();
    let new = spaces_of(&changes).filter(|space| generation.known(*space).is_none()).count();
    if new > 0 {
        KvError::check_limit("number of spaces", generation.spaces().len() + new, SPACES_MAX)?;
    }
    Ok(changes)
}

/// Bytes of changes, in the measure of [`WriteBatch::bytes`]: a deleted range is its keys.
pub(super) fn bytes_of(changes: &[Change]) -> usize {
    changes
        .iter()
        .map(|(_, key, value)| OPERATION_BYTES + key.len() + value.as_ref().map_or(0, Value::len))
        .sum()
}

/// The spaces of changes that are in the order of their spaces.
pub(super) fn spaces_of(changes: &[Change]) -> impl Iterator<Item = Space> {
    changes.chunk_by(|(left, ..), (right, ..)| left == right).map(|chunk| chunk[0].0)
}
