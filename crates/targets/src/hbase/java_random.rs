//! The random numbers of `java.util.Random`, whose algorithm its documentation fixes: PerformanceEvaluation draws rows and
//! values from them.

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// A stream of random numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JavaRandom(u64);

impl JavaRandom {
    /// `new Random(seed)`.
    pub(super) fn new(seed: i64) -> Self {
        Self((seed as u64 ^ MULTIPLIER) & MASK)
    }

    /// The stream of a client: PerformanceEvaluation seeds client n with the n-th `nextLong` of a first stream, which it
    /// seeds with the clock and this driver with the seed of the scenario.
    pub(super) fn of_client(seed: u64, number: u32) -> Self {
        let mut seeds = Self::new(seed as i64);
        for _ in 0..number {
            seeds.next_long();
        }
        Self::new(seeds.next_long())
    }

    /// `nextInt(bound)`: 0 to below `bound`, which is above 0.
    pub(super) fn next_int(&mut self, bound: i32) -> i32 {
        if bound & (bound - 1) == 0 {
            return ((i64::from(bound) * i64::from(self.next(31))) >> 31) as i32;
        }
        loop {
            let bits = self.next(31);
            let value = bits % bound;
            // The numbers after the last whole multiple of the bound would make small values more likely.
            if bits.wrapping_sub(value).wrapping_add(bound - 1) >= 0 {
                return value;
            }
        }
    }

    /// `nextLong()`.
    pub(super) fn next_long(&mut self) -> i64 {
        let high = i64::from(self.next(32)) << 32;
        high.wrapping_add(i64::from(self.next(32)))
    }

    fn next(&mut self, bits: u32) -> i32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        (self.0 >> (48 - bits)) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers were printed by OpenJDK 17.
    #[test]
    fn the_numbers_are_those_of_java() {
        let mut random = JavaRandom::new(42);
        let rows: Vec<i32> = (0..4).map(|_| random.next_int(i32::MAX)).collect();
        assert_eq!(rows, [1_562_431_130, 117_392_763, 1_467_211_248, 102_948_884]);
        let letters: Vec<i32> = (0..6).map(|_| random.next_int(26)).collect();
        assert_eq!(letters, [0, 17, 13, 16, 3, 15]);
        assert_eq!(random.next_long(), -1_782_466_964_123_969_572);
    }

    #[test]
    fn a_power_of_two_takes_the_high_bits() {
        let mut random = JavaRandom::new(42);
        assert!((0..1_000).all(|_| (0..16).contains(&random.next_int(16))));
        let (mut first, mut second) = (JavaRandom::of_client(1, 0), JavaRandom::of_client(1, 1));
        assert_ne!(first.next_long(), second.next_long());
    }
}
