//! A hash table of numbers whose keys are stored elsewhere. An entry has half of the hash, so that neither growth nor most
//! failed comparisons access the keys.
//!
//! A table with ten million entries would hold its lock for long while it doubles. So a large table consists of shards, and
//! one shard doubles at a time.

use hashbrown::HashTable;

/// Numbers, by the hash of their key.
#[derive(Default)]
pub(super) struct Numbers {
    /// No shard, one shard, or [`SHARDS`].
    shards: Vec<HashTable<Entry>>,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    number: u32,
}

const SHARDS: usize = 256;
/// The number of entries at which the one shard is split. The split takes about a millisecond.
const UNSHARDED_MAX: usize = 32 * 1024;

impl Numbers {
    /// The number with this hash that `is` accepts.
    #[inline]
    pub(super) fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = half(hash);
        let shard = self.shards.get(self.shard(hash))?;
        let found = shard.find(spread(hash), |entry| entry.hash == hash && is(entry.number));
        found.map(|entry| entry.number)
    }

    /// Adds a new number.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, number: u32) {
        match self.shards.len() {
            0 => self.shards.push(HashTable::new()),
            1 if self.shards[0].len() >= UNSHARDED_MAX => self.cut(),
            _ => {}
        }
        self.put(Entry { hash: half(hash), number });
    }

    fn put(&mut self, entry: Entry) {
        let shard = self.shard(entry.hash);
        self.shards[shard].insert_unique(spread(entry.hash), entry, |entry| spread(entry.hash));
    }

    /// The shard of a hash. All bits of the hash choose it, so that the bits that choose a bucket in the shard stay evenly
    /// distributed.
    #[inline]
    fn shard(&self, hash: u32) -> usize {
        (hash.wrapping_mul(0x9e37_79b9) >> 24) as usize & self.shards.len().saturating_sub(1)
    }

    fn cut(&mut self) {
        let whole = std::mem::take(&mut self.shards);
        // A little more than the average, so that few shards grow soon after the split.
        let each = UNSHARDED_MAX / SHARDS * 5 / 4;
        self.shards.resize_with(SHARDS, || HashTable::with_capacity(each));
        whole.into_iter().flatten().for_each(|entry| self.put(entry));
    }
}

fn half(hash: u64) -> u32 {
    (hash >> 32) as u32 ^ hash as u32
}

/// The full hash for the hash table, which takes the bucket from the lowest bits and the tag from the highest.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

const _: () = assert!(SHARDS == 256, "a shard is chosen by eight bits");

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn numbers_are_found_before_and_after_the_table_is_cut() {
        let hasher = foldhash::fast::RandomState::default();
        let hash_of = |number: u32| hasher.hash_one(number);
        let mut numbers = Numbers::default();
        assert_eq!(numbers.find(hash_of(0), |_| true), None);
        let count = UNSHARDED_MAX as u32 * 2;
        for number in 0..count {
            numbers.insert(hash_of(number), number);
            if number == 9 || number as usize == UNSHARDED_MAX {
                assert!((0..=number).all(|n| numbers.find(hash_of(n), |found| found == n) == Some(n)));
            }
        }
        assert_eq!(numbers.shards.len(), SHARDS);
        let each = count as usize / SHARDS;
        assert!(numbers.shards.iter().all(|shard| shard.len() > each / 2 && shard.len() < each * 2));
        assert!((0..count).all(|n| numbers.find(hash_of(n), |found| found == n) == Some(n)));
        assert_eq!(numbers.find(hash_of(count), |found| found == count), None);
    }

    #[test]
    fn keys_with_one_hash_are_told_apart() {
        let mut numbers = Numbers::default();
        [7, 8, 9].into_iter().for_each(|number| numbers.insert(5, number));
        assert_eq!(numbers.find(5, |number| number == 8), Some(8));
        assert_eq!(numbers.find(5, |_| false), None);
    }
}
