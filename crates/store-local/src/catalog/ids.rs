//! A set of series numbers, compact for few, many and scattered numbers.
//!
//! A bitmap costs about 70 bytes for each range of 65,536 numbers (a container) that is not empty. A list is smaller below
//! [`IDS_PER_CONTAINER`] numbers per container.

use roaring::RoaringBitmap;

/// Ascending series numbers.
#[derive(Debug)]
pub(super) enum Ids {
    List(Vec<u32>),
    Bitmap(RoaringBitmap),
}

/// The number of ids per container at which a bitmap becomes smaller than a list.
const IDS_PER_CONTAINER: usize = 16;

impl Default for Ids {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Ids {
    /// A set of two numbers, the smaller one first.
    pub(super) fn pair(first: u32, second: u32) -> Self {
        Self::List(vec![first, second])
    }

    /// Adds a number that is larger than all present ones.
    pub(super) fn push(&mut self, id: u32) {
        if let Self::List(list) = self
            && list.len() == list.capacity()
            && list.len() >= IDS_PER_CONTAINER * containers(list)
            && !list.is_empty()
        {
            *self = Self::Bitmap(sorted(list));
        }
        match self {
            Self::List(list) => list.push(id),
            Self::Bitmap(bitmap) => bitmap.try_push(id).expect("BUG: series numbers ascend"),
        }
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::List(list) => list.len() as u64,
            Self::Bitmap(bitmap) => bitmap.len(),
        }
    }

    /// The smallest number.
    pub(super) fn first(&self) -> Option<u32> {
        match self {
            Self::List(list) => list.first().copied(),
            Self::Bitmap(bitmap) => bitmap.min(),
        }
    }

    pub(super) fn to_bitmap(&self) -> RoaringBitmap {
        match self {
            Self::List(list) => sorted(list),
            Self::Bitmap(bitmap) => bitmap.clone(),
        }
    }

    /// Whether one of the numbers is in `set`.
    pub(super) fn has_any_of(&self, set: &RoaringBitmap) -> bool {
        match self {
            Self::List(list) => list.iter().any(|id| set.contains(*id)),
            Self::Bitmap(bitmap) => !bitmap.is_disjoint(set),
        }
    }

    /// Adds all numbers to `set`.
    pub(super) fn unite_into(&self, set: &mut RoaringBitmap) {
        match self {
            Self::List(list) => set.extend(list.iter().copied()),
            Self::Bitmap(bitmap) => *set |= bitmap,
        }
    }

    /// Leaves only these numbers in `set`.
    pub(super) fn keep_in(&self, set: &mut RoaringBitmap) {
        match self {
            Self::List(list) => *set &= sorted(list),
            Self::Bitmap(bitmap) => *set &= bitmap,
        }
    }

    /// Removes these numbers from `set`.
    pub(super) fn remove_from(&self, set: &mut RoaringBitmap) {
        match self {
            Self::List(list) => *set -= sorted(list),
            Self::Bitmap(bitmap) => *set -= bitmap,
        }
    }
}

/// The largest number of containers that a bitmap of the list may have.
fn containers(list: &[u32]) -> usize {
    match list {
        [first, .., last] => ((last >> 16) - (first >> 16)) as usize + 1,
        _ => 1,
    }
}

fn sorted(list: &[u32]) -> RoaringBitmap {
    RoaringBitmap::from_sorted_iter(list.iter().copied()).expect("BUG: series numbers ascend")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(numbers: impl Iterator<Item = u32>) -> Ids {
        let mut ids = Ids::default();
        numbers.for_each(|id| ids.push(id));
        ids
    }

    #[test]
    fn dense_numbers_become_a_bitmap_and_scattered_ones_stay_a_list() {
        let dense = all((0..1000).map(|n| n * 3));
        assert!(matches!(dense, Ids::Bitmap(_)));
        let scattered = all((0..1000).map(|n| n << 16));
        assert!(matches!(scattered, Ids::List(_)));
        assert_eq!((dense.first(), scattered.first(), Ids::default().first()), (Some(0), Some(0), None));
    }

    #[test]
    fn both_forms_mean_the_same() {
        for step in [3, 1 << 16] {
            let ids = all((1..=200).map(|n| n * step));
            let bitmap: RoaringBitmap = (1..=200).map(|n| n * step).collect();
            assert_eq!(ids.to_bitmap(), bitmap);
            let other: RoaringBitmap = (0..=100).map(|n| n * step).chain([1]).collect();
            let applied = |change: &dyn Fn(&mut RoaringBitmap)| {
                let mut set = other.clone();
                change(&mut set);
                set
            };
            assert!(ids.has_any_of(&other));
            assert!(!ids.has_any_of(&(&other - &bitmap)));
            assert_eq!(applied(&|set| ids.unite_into(set)), &other | &bitmap);
            assert_eq!(applied(&|set| ids.keep_in(set)), &other & &bitmap);
            assert_eq!(applied(&|set| ids.remove_from(set)), &other - &bitmap);
        }
    }
}
