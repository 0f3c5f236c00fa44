//! Finds series by the bytes in which requests name them, such as `cpu,host=a`, without decoding the bytes.
//!
//! An entry has a hash of 128 bits instead of the bytes. The hash is seeded at random when the server starts. Two names of one
//! namespace that share a hash would be one series; with ten million names the probability is below 10⁻²⁴.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use model::{Namespace, SeriesId};
use parking_lot::RwLock;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::limits::SERIES_CACHED_MAX;

/// Number of shares with a lock each.
const SHARES: usize = 16;

/// The known series of all namespaces.
#[derive(Debug)]
pub(crate) struct SeriesCache {
    seed: u64,
    per_share_max: usize,
    namespaces: RwLock<HashMap<Namespace, Arc<KnownSeries>>>,
}

impl SeriesCache {
    /// An empty cache. `seed` must be random.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, per_share_max: SERIES_CACHED_MAX / SHARES, namespaces: RwLock::default() }
    }

    /// The known series of a namespace.
    pub(crate) fn of(&self, namespace: &Namespace) -> Arc<KnownSeries> {
        if let Some(known) = self.namespaces.read().get(namespace) {
            return Arc::clone(known);
        }
        let fresh = || Arc::new(KnownSeries::new(self.seed, self.per_share_max));
        Arc::clone(self.namespaces.write().entry(namespace.clone()).or_insert_with(fresh))
    }

    /// Forgets the series of a namespace: some of them were deleted.
    pub(crate) fn forget(&self, namespace: &Namespace) {
        self.namespaces.write().remove(namespace);
    }
}

/// The known series of one namespace.
#[derive(Debug)]
pub(crate) struct KnownSeries {
    seed: u64,
    per_share_max: usize,
    shares: [RwLock<Share>; SHARES],
}

type Share = HashMap<Name, u32, BuildHasherDefault<TakeBits>>;

/// The hash of a name. As four words it needs no padding beside the number of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name([u32; 4]);

impl KnownSeries {
    fn new(seed: u64, per_share_max: usize) -> Self {
        Self { seed, per_share_max, shares: std::array::from_fn(|_| RwLock::default()) }
    }

    /// The hash under which a series is known.
    pub(crate) fn name(&self, bytes: &[u8]) -> Name {
        let hash = xxh3_128_with_seed(bytes, self.seed);
        Name([hash as u32, (hash >> 32) as u32, (hash >> 64) as u32, (hash >> 96) as u32])
    }

    /// The series with a name.
    pub(crate) fn get(&self, name: Name) -> Option<SeriesId> {
        self.share(name).read().get(&name).map(|series| SeriesId(u64::from(*series)))
    }

    /// Remembers a series.
    pub(crate) fn put(&self, name: Name, series: SeriesId) {
        // A store numbers its series below 2^32; a larger number is only not remembered.
        let Ok(series) = u32::try_from(series.0) else { return };
        let mut share = self.share(name).write();
        if share.len() >= self.per_share_max {
            share.clear();
        }
        share.insert(name, series);
    }

    fn share(&self, Name([.., last]): Name) -> &RwLock<Share> {
        &self.shares[last as usize % SHARES]
    }
}

impl std::hash::Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.0[0]) << 32 | u64::from(self.0[1]));
    }
}

/// Takes bits of a name, which is a hash already.
#[derive(Debug, Default)]
struct TakeBits(u64);

impl Hasher for TakeBits {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("BUG: a name is hashed as one number")
    }

    fn write_u64(&mut self, bits: u64) {
        self.0 = bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_found_by_its_bytes_in_its_namespace_only() {
        let cache = SeriesCache::new(7);
        let (one, other) = (Namespace::DEFAULT, Namespace::new("other").unwrap());
        let known = cache.of(&one);
        let name = known.name(b"cpu,host=a");
        assert_eq!(known.get(name), None);
        known.put(name, SeriesId(5));
        assert_eq!(cache.of(&one).get(name), Some(SeriesId(5)));
        assert_eq!(known.get(known.name(b"cpu,host=b")), None);
        assert_eq!(cache.of(&other).get(name), None);
        cache.forget(&one);
        assert_eq!(cache.of(&one).get(name), None);
    }

    #[test]
    fn a_full_share_is_emptied_and_large_numbers_are_not_remembered() {
        let known = KnownSeries::new(1, 4);
        for number in 0..1_000_u64 {
            known.put(known.name(&number.to_le_bytes()), SeriesId(number));
        }
        let sizes = known.shares.iter().map(|share| share.read().len());
        assert!(sizes.clone().all(|size| (1..=4).contains(&size)), "{:?}", sizes.collect::<Vec<_>>());
        let name = known.name(b"large");
        known.put(name, SeriesId(1 << 32));
        assert_eq!(known.get(name), None);
    }
}
