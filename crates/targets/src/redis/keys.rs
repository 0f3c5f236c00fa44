//! The key of an operation, by memtier_benchmark's patterns, with the same numbers.

use std::str::FromStr;

use super::random::Random;

/// Exponents below it count as zero, and those this close to one count as one.
const EXPONENT_EPSILON: f64 = 1e-4;

/// The distribution of keys in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Pattern {
    /// Uniform.
    #[serde(rename = "R")]
    Random,
    /// Sequential: every client walks through the whole range and starts again at its end.
    #[serde(rename = "S")]
    Sequential,
    /// Sequential: every client has its own range.
    #[serde(rename = "P")]
    Parallel,
    /// Normal distribution around the middle.
    #[serde(rename = "G")]
    Gaussian,
    /// Zipf's law; the smallest key is the most frequent one.
    #[serde(rename = "Z")]
    Zipf,
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "R" => Ok(Self::Random),
            "S" => Ok(Self::Sequential),
            "P" => Ok(Self::Parallel),
            "G" => Ok(Self::Gaussian),
            "Z" => Ok(Self::Zipf),
            other => Err(format!(
                "`{other}` is not a key pattern; use R (random), S (sequential), P (parallel), G (Gaussian) or Z (Zipf)"
            )),
        }
    }
}

/// The keys of a group of clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Keys {
    /// The prefix of every key. The number follows in decimal.
    pub prefix: String,
    /// The smallest number.
    pub min: u64,
    /// The largest number.
    pub max: u64,
    /// Gaussian: the standard deviation; `None` for a sixth of the range.
    pub deviation: Option<f64>,
    /// Gaussian: the centre; `None` for the middle of the range.
    pub median: Option<f64>,
    /// Zipf: the exponent.
    pub exponent: f64,
}

/// The key numbers of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Keys {
    /// The range of client `index` of `clients`. With `parallel` each has its own part, and the last client takes the
    /// rest.
    pub(crate) fn range_of(&self, index: u64, clients: u64, parallel: bool) -> Range {
        if !parallel {
            return Range { min: self.min, max: self.max };
        }
        let size = (self.max - self.min) / clients + 1;
        let min = self.min + size * index;
        let max = if index + 1 == clients { self.max } else { min + size - 1 };
        // With more clients than keys, the ranges of the last ones would start behind the end.
        Range { min: min.min(self.max), max: max.min(self.max) }
    }

    pub(crate) fn zipf(&self) -> Zipf {
        Zipf::new(self.min, self.max, self.exponent)
    }

    pub(crate) fn gaussian(&self, random: &mut Random, range: Range) -> u64 {
        if range.min == range.max {
            return range.min;
        }
        let length = (range.max - range.min) as f64;
        let median = self.median.unwrap_or(length / 2.0 + range.min as f64 + 0.5);
        let deviation = self.deviation.unwrap_or(length / 6.0);
        loop {
            let drawn = random.gaussian() * deviation + median;
            if drawn >= range.min as f64 && drawn <= (range.max + 1) as f64 {
                return drawn as u64;
            }
        }
    }
}

/// The number after `last` in a range that wraps around; `None` for the first.
pub(crate) fn sequential(last: Option<u64>, range: Range) -> u64 {
    match last {
        Some(last) if last >= range.min && last < range.max => last + 1,
        _ => range.min,
    }
}

/// Zipf's law by rejection-inversion (Hörmann and Derflinger, ACM TOMACS 6(3), 1996), like memtier: ranks are the
/// numbers themselves, so a range from 0 starts at 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Zipf {
    min: f64,
    max: f64,
    exponent: f64,
    integral_min: f64,
    integral_max: f64,
    shortcut: f64,
}

impl Zipf {
    fn new(min: u64, max: u64, exponent: f64) -> Self {
        let exponent = match exponent {
            e if e < EXPONENT_EPSILON => 0.0,
            e if (e - 1.0).abs() < EXPONENT_EPSILON => 1.0,
            e => e,
        };
        let min = min.max(1);
        let (min, max) = (min as f64, max.max(min) as f64);
        let mut zipf = Self { min, max, exponent, integral_min: 0.0, integral_max: 0.0, shortcut: 0.0 };
        zipf.integral_min = zipf.integral(min + 0.5) - zipf.step(min);
        zipf.integral_max = zipf.integral(max + 0.5);
        zipf.shortcut = min + 1.0 - zipf.inverse(zipf.integral(min + 1.5) - zipf.step(min + 1.0));
        zipf
    }

    /// Antiderivative of x^-e, up to a factor of 1-e.
    fn integral(&self, x: f64) -> f64 {
        if self.exponent == 1.0 { x.ln() } else { x.powf(1.0 - self.exponent) }
    }

    fn inverse(&self, u: f64) -> f64 {
        if self.exponent == 1.0 { u.exp() } else { u.powf(1.0 / (1.0 - self.exponent)) }
    }

    /// The probability of rank `k`, on the scale of the integral.
    fn step(&self, k: f64) -> f64 {
        if self.exponent == 1.0 { 1.0 / k } else { (1.0 - self.exponent) * k.powf(-self.exponent) }
    }

    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        if self.exponent == 0.0 {
            return random.range(self.min as u64, self.max as u64);
        }
        loop {
            let u = random.unit() * (self.integral_max - self.integral_min) + self.integral_min;
            let mut x = self.inverse(u);
            if x < self.min - 0.5 {
                x = self.min + 0.5;
            }
            if x >= self.max + 0.5 {
                x = self.max;
            }
            let k = (x + 0.5).floor();
            if k - x <= self.shortcut || self.accepts(u, k) {
                return k as u64;
            }
        }
    }

    fn accepts(&self, u: f64, k: f64) -> bool {
        if self.exponent == 1.0 {
            u > (k + 0.5).ln() - 1.0 / k
        } else {
            let distance = u - (k + 0.5).powf(1.0 - self.exponent);
            distance / (1.0 - self.exponent) > -k.powf(-self.exponent)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn keys(min: u64, max: u64) -> Keys {
        Keys { prefix: String::new(), min, max, deviation: None, median: None, exponent: 1.0 }
    }

    #[test]
    fn the_published_load_phases_have_their_ranges() {
        for (min, max, size) in [
            (100_000_000, 900_000_000, 2_000_001),
            (1_000_000_000, 3_800_000_000, 7_000_001),
            (100_000_000, 300_000_000, 500_001),
        ] {
            let keys = keys(min, max);
            let first = keys.range_of(0, 400, true);
            assert_eq!((first.min, first.max - first.min + 1), (min, size));
            assert_eq!(keys.range_of(399, 400, true).max, max);
        }
    }

    #[test]
    fn frequencies_follow_zipfs_law() {
        for exponent in [0.7, 1.0, 1.3] {
            let zipf = Zipf::new(0, 1_000, exponent);
            let mut random = Random::new(3);
            let mut counts = BTreeMap::new();
            (0..200_000).for_each(|_| *counts.entry(zipf.draw(&mut random)).or_insert(0_u32) += 1);
            assert!(counts.keys().all(|k| (1..=1_000).contains(k)));
            let total: f64 = (1..=1_000).map(|k| f64::from(k).powf(-exponent)).sum();
            for rank in [1_u64, 2, 5, 20] {
                let expected = (rank as f64).powf(-exponent) / total * 200_000.0;
                let got = f64::from(counts[&rank]);
                assert!((got / expected - 1.0).abs() < 0.12, "{exponent}: rank {rank}: {got} for {expected}");
            }
        }
    }

    proptest! {
        /// The reference model cuts 0..clients into consecutive ranges.
        #[test]
        fn parallel_ranges_cover_every_key_exactly_once(min in 0_u64..1_000, length in 0_u64..5_000, clients in 1_u64..60) {
            let keys = keys(min, min + length);
            prop_assume!(length >= clients * clients);
            let mut seen: Vec<u64> = Vec::new();
            for index in 0..clients {
                let range = keys.range_of(index, clients, true);
                seen.extend(range.min..=range.max);
            }
            prop_assert_eq!(seen, (min..=min + length).collect::<Vec<_>>());
        }

        #[test]
        fn sequences_walk_and_begin_again(min in 0_u64..100, length in 0_u64..50, count in 0_usize..300) {
            let range = Range { min, max: min + length };
            let mut last = None;
            for expected in (min..=min + length).cycle().take(count) {
                let next = sequential(last, range);
                prop_assert_eq!(next, expected);
                last = Some(next);
            }
        }

        #[test]
        fn gaussian_stays_near_its_range(min in 0_u64..1_000, length in 1_u64..1_000_000, seed in any::<u32>()) {
            let keys = keys(min, min + length);
            let mut random = Random::new(seed);
            let range = keys.range_of(0, 1, false);
            for _ in 0..100 {
                let key = keys.gaussian(&mut random, range);
                // memtier truncates values up to one above the largest key.
                prop_assert!((range.min..=range.max + 1).contains(&key));
            }
        }

        #[test]
        fn random_stays_in_its_range(min in any::<u32>(), length in any::<u32>(), seed in any::<u32>()) {
            let (min, max) = (u64::from(min), u64::from(min) + u64::from(length));
            let mut random = Random::new(seed);
            for _ in 0..100 {
                prop_assert!((min..=max).contains(&random.range(min, max)));
            }
        }
    }
}
