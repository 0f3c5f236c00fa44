//! The random numbers of datasets: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). The code is here because the bytes of
//! a dataset must not change with the version of a library.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// 2^-53: the distance of adjacent results of [`Random::unit`].
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

/// A stream of random numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: mix(seed ^ GOLDEN) }
    }

    /// The stream of one item: `domain` separates kinds of items, `index` the items of one kind.
    pub fn keyed(seed: u64, domain: u64, index: u64) -> Self {
        let domain = mix(mix(seed ^ GOLDEN) ^ domain.wrapping_mul(GOLDEN));
        Self { state: mix(domain ^ mix(index.wrapping_add(GOLDEN))) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * UNIT
    }

    /// Uniform in 0..bound; 0 when the bound is 0. The bias is below bound / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in low..=high.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let width = high - low;
        if width == u64::MAX { self.bits() } else { low + self.below(width + 1) }
    }

    /// Random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&self.bits().to_le_bytes()[..piece.len()]);
        }
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        // Known values of SplitMix64 from the state 1234567.
        let mut random = Random { state: 1_234_567 };
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
        assert_eq!(random.bits(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn items_have_streams_of_their_own() {
        let mut firsts: Vec<u64> = (0..4)
            .flat_map(|seed| (0..4).flat_map(move |domain| (0..256).map(move |index| (seed, domain, index))))
            .map(|(seed, domain, index)| Random::keyed(seed, domain, index).bits())
            .collect();
        firsts.sort_unstable();
        assert!(firsts.windows(2).all(|w| w[0] != w[1]));
        assert_eq!(Random::keyed(1, 2, 3), Random::keyed(1, 2, 3));
    }

    #[test]
    fn bounded_numbers_are_uniform_and_reach_both_ends() {
        let mut random = Random::new(5);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.between(3, 12) as usize - 3] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        assert_eq!(random.between(7, 7), 7);
        let _ = random.between(0, u64::MAX);
    }

    #[test]
    fn bytes_are_filled_to_the_last() {
        let mut bytes = [0_u8; 4_099];
        Random::new(1).fill(&mut bytes);
        let mut counts = [0_u32; 256];
        bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        assert!(counts.iter().all(|count| (1..=40).contains(count)), "{counts:?}");
    }
}
