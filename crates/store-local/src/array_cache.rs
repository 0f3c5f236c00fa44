//! A cache of decoded columns of parts and chunks.
//!
//! Rows that are read again and again, such as the last hour of a device on a dashboard, are decoded once. The cache is
//! bounded in bytes. A full scan uses cached columns but evicts none, so that it cannot evict columns of frequent reads.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use foldhash::fast::RandomState;
use model::FieldType;
use parking_lot::Mutex;

/// The key of a cached column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ArrayKey {
    /// A page of a column of a part.
    Part { part: u64, column: u32, page: u32 },
    /// A column of a frozen chunk.
    Chunk { chunk: u64, key: u32, field_type: FieldType },
}

/// Successive rows of one series.
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

/// Bytes of an entry besides its array.
const ENTRY_BYTES: usize = 128;

/// Whether an array may evict other ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Yes: a later read will probably need it again.
    Always,
    /// No: a scan has read it.
    IfRoom,
}

/// Decoded columns. The cache evicts the column that was unused for the longest time.
pub(crate) struct ArrayCache {
    bytes_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<ArrayKey, Entry, RandomState>,
    /// The keys in the order of eviction.
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

    /// Drops all columns.
    pub(crate) fn clear(&self) {
        let dropped = std::mem::take(&mut *self.inner.lock());
        // Without the lock: freeing large columns takes time.
        drop(dropped);
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
            // Two readers have decoded the same column.
            inner.bytes -= old.bytes;
        } else {
            inner.queue.push_back(key);
        }
        inner.bytes += bytes;
        inner.make_room(self.bytes_max);
    }
}

impl Inner {
    /// Evicts entries that were not used since the last pass.
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
        cache.clear();
        assert!(cache.get(&key(11)).is_none());
        cache.put(key(11), value(), Keep::IfRoom);
        assert!(cache.get(&key(11)).is_some());
        assert_eq!(cache.inner.lock().bytes, value().bytes());
    }

    #[test]
    fn the_same_key_twice_counts_once() {
        let cache = ArrayCache::new(10 * value().bytes());
        (0..5).for_each(|_| cache.put(key(1), value(), Keep::Always));
        let inner = cache.inner.lock();
        assert_eq!((inner.bytes, inner.queue.len()), (value().bytes(), 1));
    }
}
