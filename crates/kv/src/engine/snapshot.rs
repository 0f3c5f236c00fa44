//! The content of the engine at one point in time.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::{Keyspace, Readable};

use super::failure::read_failure;
use super::generation::Generation;
use super::readers::{Held, Readers};
use crate::{Direction, Key, KeyRange, KvError, Scan, Snapshot, Space, Value};

pub(super) struct EngineSnapshot {
    content: Held<Content>,
    spaces: Vec<Space>,
    directory: PathBuf,
}

/// The handles of fjall.
struct Content {
    snapshot: fjall::Snapshot,
    spaces: BTreeMap<Space, Keyspace>,
}

impl EngineSnapshot {
    pub(super) fn new(generation: &Generation, readers: &Arc<Readers>, directory: &Path) -> Self {
        // A space that is made after the snapshot has no keys in it.
        let spaces = generation.spaces();
        let names = spaces.keys().copied().collect();
        let content = readers.hold(Content { snapshot: generation.snapshot(), spaces });
        Self { content, spaces: names, directory: directory.to_owned() }
    }
}

impl Snapshot for EngineSnapshot {
    fn spaces(&self) -> Vec<Space> {
        self.spaces.clone()
    }

    fn scan(&self, space: Space, range: &KeyRange, direction: Direction) -> Result<Scan, KvError> {
        let records = self.content.with(|content, readers| {
            let keyspace = content.spaces.get(&space).filter(|_| !range.is_empty())?;
            let found = content.snapshot.range(keyspace, range_of(range));
            let found: Box<dyn Iterator<Item = fjall::Guard> + Send> = match direction {
                Direction::Ascending => Box::new(found),
                Direction::Descending => Box::new(found.rev()),
            };
            Some(Records { found: Some(readers.hold(found)), directory: self.directory.clone() })
        })?;
        Ok(match records {
            Some(records) => Box::new(records),
            None => Box::new(std::iter::empty()),
        })
    }
}

/// The records of a scan.
struct Records {
    /// `None` after an error.
    found: Option<Held<Box<dyn Iterator<Item = fjall::Guard> + Send>>>,
    directory: PathBuf,
}

impl Records {
    fn read(&self) -> Result<Option<(Key, Value)>, KvError> {
        let Some(found) = &self.found else { return Ok(None) };
        let record = found.with(|found, _| found.next().map(fjall::Guard::into_inner))?;
        match record.transpose().map_err(|error| read_failure(&self.directory, error))? {
            Some((key, value)) => Ok(Some((Key::from(key), Value::from(value)))),
            None => Ok(None),
        }
    }
}

impl Iterator for Records {
    type Item = Result<(Key, Value), KvError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.read();
        if record.is_err() {
            self.found = None;
        }
        record.transpose()
    }
}

/// A range in the form of the engine.
pub(super) fn range_of(range: &KeyRange) -> (Bound<Key>, Bound<Key>) {
    let to = range.to().cloned().map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(range.from().clone()), to)
}
