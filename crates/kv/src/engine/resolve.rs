//! The effect of a batch as one write or deletion per key.
//!
//! The engine gives all writes of a batch the same version, so a key must not occur twice in one.

use std::collections::BTreeMap;

use super::core::Core;
use super::snapshot::range_of;
use crate::limits::{RANGE_KEYS_MAX, SPACES_MAX};
use crate::{Key, KvError, Operation, Space, Value, WriteBatch};

/// The last write of each key; `None` deletes it.
pub(super) type Changes = BTreeMap<(Space, Key), Option<Value>>;

/// Does the operations in their order. A deletion of a range becomes a deletion of each of its keys.
pub(super) fn resolve(core: &Core, batch: &WriteBatch) -> Result<Changes, KvError> {
    let mut changes = Changes::new();
    let mut deleted = 0;
    for (space, operation) in batch.operations() {
        match operation {
            Operation::Put(key, value) => {
                changes.insert((*space, key.clone()), Some(value.clone()));
            }
            Operation::Delete(key) => {
                changes.insert((*space, key.clone()), None);
            }
            Operation::DeleteRange(range) if range.is_empty() => {}
            Operation::DeleteRange(range) => {
                for ((of, key), value) in changes.range_mut((*space, range.from().clone())..) {
                    if of != space || !range.contains(key) {
                        break;
                    }
                    *value = None;
                }
                let Some(keyspace) = core.spaces.read().get(space).cloned() else { continue };
                for found in keyspace.range(range_of(range)) {
                    let key = found.key().map_err(|error| core.failure("read", error))?;
                    deleted += 1;
                    KvError::check_limit("keys of deleted ranges", deleted, RANGE_KEYS_MAX)?;
                    changes.insert((*space, key.into()), None);
                }
            }
        }
    }
    let known = core.spaces.read();
    let new = changes.keys().map(|(space, _)| space).filter(|space| !known.contains_key(space));
    let new: std::collections::BTreeSet<_> = new.collect();
    KvError::check_limit("number of spaces", known.len() + new.len(), SPACES_MAX)?;
    Ok(changes)
}
