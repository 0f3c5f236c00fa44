//! Columns of parts and chunks as Arrow arrays, kept after they were decoded.
//!
//! What is asked for again and again, such as the last hour of a device on a dashboard, is decoded once. The cache is
//! bounded in bytes; a full scan uses what is here but replaces nothing, so that it cannot push out what pays.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use foldhash::fast::RandomState;
use model::FieldType;
use parking_lot::Mutex;

/// What an array is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ArrayKey {
    /// A page of a column of a part.
    Part { part: u64, column: u32, page: u32 },
    /// A column of a frozen chunk.
    Chunk { chunk: u64, key: u32, field_type: FieldType },
}

/// Rows of one series that stand one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeriesRun {
    pub(crate) series: u32,
    /// The row after the last.
    pub(crate) end: u32,
}

/// A decoded column.
#[derive(Debug, Clone)]
pub(crate) enum Cached {
    Array(ArrayRef),
    /// The column of series numbers.
    Runs(Arc<[SeriesRun]>),
}

impl Cached {
    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Self::Array(array) => array.get_array_memory_size(),
                Self::Runs(runs) => size_of_val(&**runs),
            }
    }
}

/// What an entry takes besides its array.
const ENTRY_BYTES: usize = 128;

/// Whether an array may push out others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It was read for its own sake and will probably be asked for again.
    Always,
    /// It was passed by.
    IfRoom,
}

/// Decoded columns, the longest unused dropped first.
pub(crate) struct ArrayCache {
    bytes_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<ArrayKey, Entry, RandomState>,
    /// In the order in which they will be looked at when room is needed.
    queue: VecDeque<ArrayKey>,
    bytes: usize,
}

struct Entry {
    value: Cached,
    bytes: usize,
    used: bool,
}

impl ArrayCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, inner: Mutex::default() }
    }

    pub(crate) fn get(&self, key: &ArrayKey) -> Option<Cached> {
        let mut inner = self.inner.lock();
        let entry = inner.entries.get_mut(key)?;
        entry.used = true;
        Some(entry.value.clone())
    }

    pub(crate) fn put(&self, key: ArrayKey, value: Cached, keep: Keep) {
        let bytes = value.bytes();
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        let room = self.bytes_max.saturating_sub(inner.bytes);
        if bytes > self.bytes_max / 4 || (bytes > room && keep == Keep::IfRoom) {
            return;
        }
        if let Some(old) = inner.entries.insert(key, Entry { value, bytes, used: false }) {
            // Two readers decoded the same.
            inner.bytes -= old.bytes;
        } else {
            inner.queue.push_back(key);
        }
        inner.bytes += bytes;
        inner.make_room(self.bytes_max);
    }
}

impl Inner {
    /// Drops entries that were not used since they were looked at last.
    fn make_room(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max
            && let Some(key) = self.queue.pop_front()
        {
            match self.entries.get_mut(&key) {
                Some(entry) if entry.used => {
                    entry.used = false;
                    self.queue.push_back(key);
                }
                Some(entry) => {
                    self.bytes -= entry.bytes;
                    self.entries.remove(&key);
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    fn key(page: u32) -> ArrayKey {
        ArrayKey::Part { part: 1, column: 2, page }
    }

    fn value() -> Cached {
        Cached::Array(Arc::new(Int64Array::from(vec![0; 100])))
    }

    #[test]
    fn what_is_used_stays_and_what_is_passed_by_pushes_nothing_out() {
        let cache = ArrayCache::new(10 * value().bytes());
        (0..10).for_each(|page| cache.put(key(page), value(), Keep::Always));
        cache.put(key(10), value(), Keep::IfRoom);
        assert!(cache.get(&key(10)).is_none());
        assert!(cache.get(&key(0)).is_some());
        cache.put(key(11), value(), Keep::Always);
        let found: Vec<u32> = (0..12).filter(|page| cache.get(&key(*page)).is_some()).collect();
        assert_eq!(found, [0, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
        assert!(cache.inner.lock().bytes <= cache.bytes_max);
    }

    #[test]
    fn the_same_key_twice_counts_once() {
        let cache = ArrayCache::new(10 * value().bytes());
        (0..5).for_each(|_| cache.put(key(1), value(), Keep::Always));
        let inner = cache.inner.lock();
        assert_eq!((inner.bytes, inner.queue.len()), (value().bytes(), 1));
    }
}
