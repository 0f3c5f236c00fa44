//! How many annotations each database has, and how long they are.

use std::collections::HashMap;

use kv::{Direction, KeyRange, KeyValueStore, KvError};
use model::Namespace;

use super::error::AnnotationError;
use super::limits::{ANNOTATIONS_BYTES_PER_DATABASE_MAX, ANNOTATIONS_PER_DATABASE_MAX};
use super::record::{ANNOTATIONS, of_database};

/// The usage of the databases whose annotations were changed since the start.
#[derive(Debug, Default)]
pub(crate) struct Usages(HashMap<Namespace, Usage>);

/// What the annotations of a database take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    count: usize,
    bytes: usize,
}

impl Usages {
    /// The usage of a database. The first time it reads the records.
    pub(crate) fn of(&mut self, kv: &dyn KeyValueStore, namespace: &Namespace) -> Result<Usage, KvError> {
        if let Some(usage) = self.0.get(namespace) {
            return Ok(*usage);
        }
        let mut usage = Usage::default();
        for record in kv.scan(ANNOTATIONS, &KeyRange::prefix(of_database(namespace)), Direction::Ascending)? {
            let (key, value) = record?;
            usage.count += 1;
            usage.bytes += key.len() + value.len();
        }
        self.set(namespace, usage);
        Ok(usage)
    }

    pub(crate) fn set(&mut self, namespace: &Namespace, usage: Usage) {
        self.0.insert(namespace.clone(), usage);
    }

    pub(crate) fn forget(&mut self, namespace: &Namespace) {
        self.0.remove(namespace);
    }
}

impl Usage {
    /// Takes a record in the place of one that took `before` bytes, if there was one.
    ///
    /// # Errors
    /// The database would have too many annotations, or too long ones.
    pub(crate) fn replace(&mut self, before: Option<usize>, bytes: usize) -> Result<(), AnnotationError> {
        if let Some(before) = before {
            self.remove(before);
        }
        self.count += 1;
        self.bytes += bytes;
        AnnotationError::check("annotations of the database", self.count, ANNOTATIONS_PER_DATABASE_MAX)?;
        let limit = ANNOTATIONS_BYTES_PER_DATABASE_MAX;
        AnnotationError::check("bytes of the annotations of the database", self.bytes, limit)
    }

    /// Gives back a record.
    pub(crate) fn remove(&mut self, bytes: usize) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_has_room_for_a_number_of_annotations_and_of_bytes() {
        let mut usage = Usage { count: ANNOTATIONS_PER_DATABASE_MAX - 1, bytes: 10 };
        usage.replace(None, 5).unwrap();
        usage.replace(Some(5), 7).unwrap();
        assert_eq!(usage, Usage { count: ANNOTATIONS_PER_DATABASE_MAX, bytes: 17 });
        let mut more = usage;
        assert!(more.replace(None, 1).unwrap_err().to_string().starts_with("annotations of the database"));
        usage.remove(17);
        assert!(usage.replace(None, ANNOTATIONS_BYTES_PER_DATABASE_MAX + 1).is_err());
    }
}
