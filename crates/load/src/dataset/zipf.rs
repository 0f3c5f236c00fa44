//! Zipf distributions: the probability of rank n is proportional to 1 / n^exponent.

use super::random::Random;

/// Zipf over 1..=n by rejection-inversion (Hoermann and Derflinger, TOMACS 1996), in constant time and memory. sysbench
/// (exponent 0.8) and memtier (exponent 1) use it.
#[derive(Debug, Clone, PartialEq)]
pub struct Zipf {
    count: u64,
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// A distribution over the ranks 1..=count; the exponent is at least 0.
    pub fn new(count: u64, exponent: f64) -> Self {
        let integral_first = integral(1.5, exponent) - 1.0;
        let shortcut = 2.0 - integral_inverse(integral(2.5, exponent) - weight(2.0, exponent), exponent);
        let count = count.max(1);
        Self {
            count,
            exponent,
            integral_first,
            integral_last: integral(count as f64 + 0.5, exponent),
            shortcut,
        }
    }

    /// A rank; 1 is the most frequent.
    pub fn sample(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = integral_inverse(area, self.exponent);
            let rank = ((x + 0.5) as u64).clamp(1, self.count);
            let near = rank as f64 - x <= self.shortcut;
            if near || area >= integral(rank as f64 + 0.5, self.exponent) - weight(rank as f64, self.exponent)
            {
                return rank;
            }
        }
    }
}

/// Integral of x^-exponent from 1.
fn integral(x: f64, exponent: f64) -> f64 {
    let log = libm::log(x);
    expm1_ratio((1.0 - exponent) * log) * log
}

fn integral_inverse(area: f64, exponent: f64) -> f64 {
    let t = (area * (1.0 - exponent)).max(-1.0);
    libm::exp(log1p_ratio(t) * area)
}

fn weight(x: f64, exponent: f64) -> f64 {
    libm::exp(-exponent * libm::log(x))
}

/// ln(1 + x) / x, by its series near 0.
fn log1p_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * (0.5 - x * (1.0 / 3.0 - 0.25 * x)) }
}

/// (e^x - 1) / x, by its series near 0.
fn expm1_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x * 0.5 * (1.0 + x / 3.0 * (1.0 + 0.25 * x)) }
}

/// The number of ranks from which YCSB's scrambled generator draws before hashing.
const SCRAMBLED_ITEMS: f64 = 1e10;
/// The sum of 1 / n^0.99 over these ranks, the constant in YCSB's source.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;
/// YCSB's exponent.
const SCRAMBLED_THETA: f64 = 0.99;

/// YCSB's scrambled Zipf: a rank among 1e10 by Gray's approximation (SIGMOD 1994), spread over the items by a hash, so
/// that popular items lie anywhere.
#[derive(Debug, Clone, PartialEq)]
pub struct ScrambledZipf {
    count: u64,
    alpha: f64,
    eta: f64,
}

impl ScrambledZipf {
    /// A distribution over 0..count.
    pub fn new(count: u64) -> Self {
        let zeta_two = 1.0 + libm::pow(0.5, SCRAMBLED_THETA);
        let eta = (1.0 - libm::pow(2.0 / SCRAMBLED_ITEMS, 1.0 - SCRAMBLED_THETA))
            / (1.0 - zeta_two / SCRAMBLED_ZETA);
        Self { count: count.max(1), alpha: 1.0 / (1.0 - SCRAMBLED_THETA), eta }
    }

    /// An item.
    pub fn sample(&self, random: &mut Random) -> u64 {
        fnv64(self.rank(random.unit())) % self.count
    }

    fn rank(&self, unit: f64) -> u64 {
        let area = unit * SCRAMBLED_ZETA;
        if area < 1.0 {
            0
        } else if area < 1.0 + libm::pow(0.5, SCRAMBLED_THETA) {
            1
        } else {
            (SCRAMBLED_ITEMS * libm::pow(self.eta * unit - self.eta + 1.0, self.alpha)) as u64
        }
    }
}

/// YCSB's key hash: FNV-1a over the eight bytes of a number, least significant first, without its sign.
pub fn fnv64(mut number: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for _ in 0..8 {
        hash = (hash ^ (number & 0xff)).wrapping_mul(1_099_511_628_211);
        number >>= 8;
    }
    hash.cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probabilities by definition.
    fn expected(count: u64, exponent: f64) -> Vec<f64> {
        let weights: Vec<f64> = (1..=count).map(|n| (n as f64).powf(-exponent)).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / sum).collect()
    }

    #[test]
    fn ranks_have_the_frequencies_of_the_definition() {
        const DRAWS: usize = 400_000;
        for (count, exponent) in
            [(1, 0.8), (2, 0.8), (100, 0.8), (100, 1.0), (1_000, 1.0), (50, 2.5), (20, 0.0)]
        {
            let zipf = Zipf::new(count, exponent);
            let mut random = Random::new(11);
            let mut counts = vec![0_u32; count as usize];
            for _ in 0..DRAWS {
                counts[zipf.sample(&mut random) as usize - 1] += 1;
            }
            for (rank, (seen, share)) in counts.iter().zip(expected(count, exponent)).enumerate() {
                let mean = share * DRAWS as f64;
                let off = (f64::from(*seen) - mean).abs();
                assert!(
                    off <= 5.0 * mean.sqrt() + 1.0,
                    "{count}/{exponent}: rank {} {seen}, expected {mean}",
                    rank + 1
                );
            }
        }
    }

    #[test]
    fn large_ranges_stay_in_bounds() {
        let zipf = Zipf::new(10_000_000_000, 1.0);
        let mut random = Random::new(3);
        for _ in 0..100_000 {
            assert!((1..=10_000_000_000).contains(&zipf.sample(&mut random)));
        }
    }

    #[test]
    fn scrambled_items_have_the_frequencies_of_the_ranks_that_hash_to_them() {
        const DRAWS: u32 = 300_000;
        let zipf = ScrambledZipf::new(1_000_003);
        let mut random = Random::new(9);
        let (first, second) = (fnv64(0) % 1_000_003, fnv64(1) % 1_000_003);
        let mut counts = (0_u32, 0_u32);
        for _ in 0..DRAWS {
            let item = zipf.sample(&mut random);
            assert!(item < 1_000_003);
            counts.0 += u32::from(item == first);
            counts.1 += u32::from(item == second);
        }
        // 1 / 26.469 and 0.5^0.99 / 26.469 of all draws.
        assert!((f64::from(counts.0) / f64::from(DRAWS) - 0.03778).abs() < 0.002, "{counts:?}");
        assert!((f64::from(counts.1) / f64::from(DRAWS) - 0.01902).abs() < 0.0015, "{counts:?}");
    }

    #[test]
    fn the_hash_is_that_of_ycsb() {
        // YCSB's first key is user6284781860667377211.
        assert_eq!(fnv64(0), 6_284_781_860_667_377_211);
        assert_eq!(fnv64(1), 8_517_097_267_634_966_620);
    }
}
