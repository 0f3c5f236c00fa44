//! Statistics about the rows of a new part, computed before the writer writes the first row: the types of each key, and
//! the scales of numbers.

use std::sync::Arc;

use model::{FieldType, ValueRef};

use super::encode::decimal::ScaleFinder;
use super::rows::Sorted;
use crate::chunk::Chunk;
use crate::row::KeyId;

/// The types and the scales of the values of some rows.
#[derive(Debug)]
pub(crate) struct ColumnStats {
    /// By key number.
    keys: Vec<KeyStats>,
}

/// The types and the scale of the values of one key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeyStats {
    /// A bit for each type that has a value.
    types: u8,
    scale: ScaleFinder,
}

impl KeyStats {
    /// Whether there are values of this type.
    pub(crate) fn has(&self, field_type: FieldType) -> bool {
        self.types & 1 << field_type.code() != 0
    }

    /// The scale at which every f64 is a decimal; `None` if there is none.
    pub(crate) fn scale(&self) -> Option<u8> {
        self.scale.scale()
    }
}

impl ColumnStats {
    /// Statistics without any value.
    pub(crate) fn new() -> Self {
        Self { keys: Vec::new() }
    }

    /// The statistics of the rows of a new part.
    pub(crate) fn of(chunks: &[Arc<Chunk>], rows: &Sorted) -> Self {
        let mut stats = Self::new();
        match rows {
            Sorted::Numbers(key, rows) => {
                rows.iter().for_each(|row| stats.add(*key, ValueRef::F64(row.value)));
            }
            Sorted::ChunkRows(rows) => {
                for row in rows {
                    let fields = chunks[row.chunk()].fields(row.row());
                    fields.for_each(|(key, value)| stats.add(key, value));
                }
            }
        }
        stats
    }

    #[inline]
    pub(crate) fn add(&mut self, key: KeyId, value: ValueRef<'_>) {
        let found = self.key(key);
        found.types |= 1 << value.field_type().code();
        if let ValueRef::F64(value) = value {
            found.scale.add(value);
        }
    }

    fn key(&mut self, key: KeyId) -> &mut KeyStats {
        let key = key as usize;
        if self.keys.len() <= key {
            self.keys.resize(key + 1, KeyStats::default());
        }
        &mut self.keys[key]
    }

    /// By key number.
    pub(crate) fn keys(&self) -> &[KeyStats] {
        &self.keys
    }
}
