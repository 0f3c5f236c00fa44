//! What was decoded of parts lately, bounded by bytes.
//!
//! Two generations: what is used moves to the young one; when that has half of the bytes it becomes the old one, and what
//! was old is dropped. So nothing that is used often goes, and no list has to be kept in order.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::Mutex;

use super::values::{SeriesRuns, Values};

/// Which rows of which column: part, row group, column, window.
pub(crate) type DecodedKey = (u64, u32, u32, u32);

/// Something decoded.
#[derive(Clone)]
pub(crate) enum Decoded {
    Values(Arc<Values>),
    Runs(Arc<SeriesRuns>),
}

impl Decoded {
    fn bytes(&self) -> usize {
        match self {
            Self::Values(values) => values.bytes(),
            Self::Runs(runs) => runs.bytes(),
        }
    }
}

/// Decoded columns of all parts of a store.
pub(crate) struct DecodedCache {
    bytes_max: usize,
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<DecodedKey, Decoded, RandomState>,
    young_bytes: usize,
    old: HashMap<DecodedKey, Decoded, RandomState>,
}

impl DecodedCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, generations: Mutex::default() }
    }

    /// What was put under a key, if it is still there.
    pub(crate) fn get(&self, key: DecodedKey) -> Option<Decoded> {
        let mut generations = self.generations.lock();
        if let Some(found) = generations.young.get(&key) {
            return Some(found.clone());
        }
        let found = generations.old.remove(&key)?;
        generations.put(key, found.clone(), self.bytes_max);
        Some(found)
    }

    /// Keeps something for later.
    pub(crate) fn put(&self, key: DecodedKey, decoded: Decoded) {
        self.generations.lock().put(key, decoded, self.bytes_max);
    }
}

impl Generations {
    fn put(&mut self, key: DecodedKey, decoded: Decoded, bytes_max: usize) {
        let bytes = decoded.bytes();
        if self.young_bytes + bytes > bytes_max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if bytes <= bytes_max / 2 && self.young.insert(key, decoded).is_none() {
            self.young_bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_bytes_are_bounded() {
        let runs = || Decoded::Runs(Arc::new(SeriesRuns::new(&[1; 10])));
        let cache = DecodedCache::new(10 * runs().bytes());
        for window in 0..100 {
            cache.put((1, 0, 0, window), runs());
            assert!(cache.get((1, 0, 0, 0)).is_some(), "used before {window}");
            let generations = cache.generations.lock();
            assert!(generations.young.len() + generations.old.len() <= 10);
        }
        assert!(cache.get((1, 0, 0, 50)).is_none() && cache.get((1, 0, 0, 99)).is_some());
    }
}
