//! Random-looking numbers without repetition: a permutation of all 32-bit numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// The largest prime below 2^32 that is 3 modulo 4. Squaring modulo it, mirrored in the upper half, is a permutation.
const PRIME: u64 = 4_294_967_291;

/// A permutation of all 32-bit numbers by quadratic residues (Preshing). sysbench takes its row ids without
/// AUTO_INCREMENT from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unique {
    start: u32,
    offset: u32,
}

impl Unique {
    /// The permutation of a seed.
    pub fn new(seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        Self {
            start: permute(permute(low).wrapping_add(0x682f_0161)),
            offset: permute(permute(high).wrapping_add(0x4679_0905)),
        }
    }

    /// The number at a position. Different positions have different numbers.
    pub fn at(self, place: u32) -> u32 {
        let index = self.start.wrapping_add(place);
        permute(permute(index).wrapping_add(self.offset) ^ 0x5bf0_3635)
    }
}

/// The numbers of one process: every n-th of the sequence, so that n processes generate distinct numbers.
#[derive(Debug)]
pub struct UniqueShare {
    unique: Unique,
    part: (u32, u32),
    taken: AtomicU64,
}

impl UniqueShare {
    /// The sequence of a seed for part `part.0` of `part.1`; `(0, 1)` takes all of it.
    pub fn new(seed: u64, part: (u32, u32)) -> Self {
        Self { unique: Unique::new(seed), part, taken: AtomicU64::new(0) }
    }

    /// The next number.
    pub fn next(&self) -> u32 {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        let (part, parts) = self.part;
        // The sequence starts again after 2^32 numbers.
        self.unique.at(taken.wrapping_mul(parts.into()).wrapping_add(part.into()) as u32)
    }
}

fn permute(number: u32) -> u32 {
    let wide = u64::from(number);
    if wide >= PRIME {
        return number;
    }
    let residue = wide * wide % PRIME;
    if wide <= PRIME / 2 { residue as u32 } else { (PRIME - residue) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_repeat() {
        let unique = Unique::new(77);
        let mut numbers: Vec<u32> = (0..1_000_000).map(|place| unique.at(place)).collect();
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|w| w[0] != w[1]));
        assert!(numbers[500_000].abs_diff(u32::MAX / 2) < u32::MAX / 100, "they spread over the whole range");
        assert_ne!(unique.at(0), Unique::new(78).at(0));
    }

    #[test]
    fn processes_share_the_numbers_of_one() {
        let take = |part, count| {
            let share = UniqueShare::new(77, part);
            (0..count).map(|_| share.next()).collect::<Vec<u32>>()
        };
        let unique = Unique::new(77);
        let alone = take((0, 1), 3_000);
        assert_eq!(alone, (0..3_000).map(|place| unique.at(place)).collect::<Vec<_>>());
        let mut shared: Vec<u32> = (0..3).flat_map(|part| take((part, 3), 1_000)).collect();
        assert_eq!(shared[..2], [alone[0], alone[3]]);
        let mut alone = alone;
        alone.sort_unstable();
        shared.sort_unstable();
        assert_eq!(shared, alone);
    }
}
