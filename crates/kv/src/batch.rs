//! Batches of writes.

use crate::limits::{BATCH_BYTES_MAX, KEY_BYTES_MAX, OPERATION_BYTES, VALUE_BYTES_MAX};
use crate::{Key, KeyRange, KvError, Space, Value};

/// Writes that a store does as a whole or not at all, across spaces. A later operation acts on the result of the earlier ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteBatch {
    operations: Vec<(Space, Operation)>,
    bytes: usize,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Sets the value of a key.
    Put(Key, Value),
    /// Deletes a key; nothing happens if it does not exist.
    Delete(Key),
    /// Deletes a key that has this value; nothing happens if it has another one or does not exist.
    DeleteIf(Key, Value),
    /// Deletes all keys of a range.
    DeleteRange(KeyRange),
}

impl WriteBatch {
    /// A batch without operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a key.
    pub fn put(&mut self, space: Space, key: impl Into<Key>, value: impl Into<Value>) -> &mut Self {
        self.push(space, Operation::Put(key.into(), value.into()))
    }

    /// Deletes a key; nothing happens if it does not exist.
    pub fn delete(&mut self, space: Space, key: impl Into<Key>) -> &mut Self {
        self.push(space, Operation::Delete(key.into()))
    }

    /// Deletes a key if it has this value when the batch is committed.
    pub fn delete_if(&mut self, space: Space, key: impl Into<Key>, value: impl Into<Value>) -> &mut Self {
        self.push(space, Operation::DeleteIf(key.into(), value.into()))
    }

    /// Deletes all keys of a range that exist when the batch is committed.
    pub fn delete_range(&mut self, space: Space, range: impl Into<KeyRange>) -> &mut Self {
        self.push(space, Operation::DeleteRange(range.into()))
    }

    /// Adds an operation.
    pub fn push(&mut self, space: Space, operation: Operation) -> &mut Self {
        self.bytes += operation.bytes();
        self.operations.push((space, operation));
        self
    }

    /// The operations, in order.
    pub fn operations(&self) -> &[(Space, Operation)] {
        &self.operations
    }

    /// Size in bytes: keys, values and a charge for each operation.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Removes the operations.
    pub fn clear(&mut self) {
        self.operations.clear();
        self.bytes = 0;
    }

    /// Refuses a batch that breaks a limit. A key to put or delete has at least one byte.
    ///
    /// # Errors
    /// [`KvError::OverLimit`] and [`KvError::EmptyKey`].
    pub fn check(&self) -> Result<(), KvError> {
        KvError::check_limit("bytes of a batch", self.bytes, BATCH_BYTES_MAX)?;
        for (_, operation) in &self.operations {
            match operation {
                Operation::Put(key, value) | Operation::DeleteIf(key, value) => {
                    check_key(key)?;
                    KvError::check_limit("bytes of a value", value.len(), VALUE_BYTES_MAX)?;
                }
                Operation::Delete(key) => check_key(key)?,
                Operation::DeleteRange(range) => {
                    KvError::check_limit("bytes of a key", range.from().len(), KEY_BYTES_MAX)?;
                    KvError::check_limit("bytes of a key", range.to().map_or(0, Key::len), KEY_BYTES_MAX)?;
                }
            }
        }
        Ok(())
    }
}

impl Operation {
    fn bytes(&self) -> usize {
        OPERATION_BYTES
            + match self {
                Self::Put(key, value) | Self::DeleteIf(key, value) => key.len() + value.len(),
                Self::Delete(key) => key.len(),
                Self::DeleteRange(range) => range.from().len() + range.to().map_or(0, Key::len),
            }
    }
}

fn check_key(key: &Key) -> Result<(), KvError> {
    if key.is_empty() {
        return Err(KvError::EmptyKey);
    }
    KvError::check_limit("bytes of a key", key.len(), KEY_BYTES_MAX)
}
