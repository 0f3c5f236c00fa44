//! The content of the engine at one point in time.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;

use fjall::{Keyspace, Readable};

use super::core::failure;
use crate::{Direction, Key, KeyRange, KvError, Scan, Snapshot, Space, Value};

pub(super) struct EngineSnapshot {
    pub(super) snapshot: fjall::Snapshot,
    pub(super) spaces: BTreeMap<Space, Keyspace>,
    pub(super) directory: PathBuf,
}

impl Snapshot for EngineSnapshot {
    fn spaces(&self) -> Vec<Space> {
        self.spaces.keys().copied().collect()
    }

    fn scan(&self, space: Space, range: &KeyRange, direction: Direction) -> Result<Scan, KvError> {
        let Some(keyspace) = self.spaces.get(&space).filter(|_| !range.is_empty()) else {
            return Ok(Box::new(std::iter::empty()));
        };
        let found = self.snapshot.range(keyspace, range_of(range));
        let directory = self.directory.clone();
        let record = move |found: fjall::Guard| {
            let (key, value) = found.into_inner().map_err(|error| failure(&directory, "read", error))?;
            Ok((Key::from(key), Value::from(value)))
        };
        Ok(match direction {
            Direction::Ascending => Box::new(found.map(record)),
            Direction::Descending => Box::new(found.rev().map(record)),
        })
    }
}

/// A range in the form of the engine.
pub(super) fn range_of(range: &KeyRange) -> (Bound<Key>, Bound<Key>) {
    let to = range.to().cloned().map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(range.from().clone()), to)
}
