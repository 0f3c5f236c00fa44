//! Distributions of items over a range.
//!
//! `uniform`, `special`, `gaussian`, `pareto` and `zipfian` use the arithmetic of sysbench 1.0.x exactly, with other
//! random numbers. `scrambled`, `hotspot` and `latest` are those of YCSB.

use serde::{Deserialize, Serialize};

use super::random::Random;
use super::zipf::{ScrambledZipf, Zipf};

/// A distribution with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum Distribution {
    /// Every item with the same probability.
    Uniform,
    /// sysbench's default up to 1.0: a share of the draws falls into a small zone beside the middle, the others follow
    /// a bell curve over the whole range. With the defaults, 75 % of the draws go to 0.75 % of the items (49.75 % to
    /// 50.5 % of the range), 75.8 % with those of the bell curve.
    Special {
        /// The number of uniform numbers averaged for the bell curve (12).
        #[serde(default = "twelve")]
        iterations: u32,
        /// The size of the zone, percent of the range (1).
        #[serde(default = "one")]
        percent: f64,
        /// The draws in the zone, percent (75).
        #[serde(default = "seventy_five")]
        share: f64,
    },
    /// The mean of several uniform numbers: a bell curve around the middle.
    Gaussian {
        /// The number of uniform numbers (12).
        #[serde(default = "twelve")]
        iterations: u32,
    },
    /// Few items at the start of the range take most draws: with h = 0.2, 80 % of the draws go to the first 20 %.
    Pareto {
        /// The shape.
        #[serde(default = "fifth")]
        h: f64,
    },
    /// The n-th item of the range with a probability proportional to 1 / n^exponent (0.8 in sysbench, 1 in memtier).
    Zipfian {
        #[serde(default = "eight_tenths")]
        exponent: f64,
    },
    /// YCSB's Zipf distribution with exponent 0.99, spread over the range by a hash.
    Scrambled,
    /// A hot part at the start of the range. Both parts are uniform.
    Hotspot {
        /// The size of the hot part, 0 to 1 (0.2).
        #[serde(default = "fifth")]
        items: f64,
        /// The share of draws in the hot part, 0 to 1 (0.8).
        #[serde(default = "eight_tenths")]
        draws: f64,
    },
    /// The last item is the newest and most frequent one: Zipf with exponent 0.99 from the end.
    Latest,
}

fn twelve() -> u32 {
    12
}
fn one() -> f64 {
    1.0
}
fn seventy_five() -> f64 {
    75.0
}
fn fifth() -> f64 {
    0.2
}
fn eight_tenths() -> f64 {
    0.8
}

/// YCSB's exponent for `latest`.
const LATEST_EXPONENT: f64 = 0.99;

impl Distribution {
    /// A distribution by its name, with the original's parameters.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "uniform" => Self::Uniform,
            "special" => Self::Special { iterations: twelve(), percent: one(), share: seventy_five() },
            "gaussian" => Self::Gaussian { iterations: twelve() },
            "pareto" => Self::Pareto { h: fifth() },
            "zipfian" => Self::Zipfian { exponent: eight_tenths() },
            "scrambled" => Self::Scrambled,
            "hotspot" => Self::Hotspot { items: fifth(), draws: eight_tenths() },
            "latest" => Self::Latest,
            _ => return None,
        })
    }

    pub const NAMES: [&'static str; 8] =
        ["uniform", "special", "gaussian", "pareto", "zipfian", "scrambled", "hotspot", "latest"];

    /// Checks the parameters. The error names the wrong one.
    pub fn check(&self) -> Result<(), String> {
        let within = |what: &str, value: f64, low: f64, high: f64| {
            if value.is_finite() && (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(format!("`{what}` is {value}; it lies between {low} and {high}"))
            }
        };
        match *self {
            Self::Uniform | Self::Scrambled | Self::Latest => Ok(()),
            Self::Special { iterations, percent, share } => {
                within("iterations", f64::from(iterations), 1.0, 1_000.0)?;
                within("percent", percent, 0.0, 100.0)?;
                within("share", share, 0.0, 99.9)
            }
            Self::Gaussian { iterations } => within("iterations", f64::from(iterations), 1.0, 1_000.0),
            Self::Pareto { h } => within("h", h, 0.001, 0.999),
            Self::Zipfian { exponent } => within("exponent", exponent, 0.0, 10.0),
            Self::Hotspot { items, draws } => {
                within("items", items, 0.0, 1.0)?;
                within("draws", draws, 0.0, 1.0)
            }
        }
    }

    /// A sampler for low..=high.
    pub fn over(self, low: u64, high: u64) -> Sampler {
        let count = high.saturating_sub(low).saturating_add(1);
        let shape = match self {
            Self::Uniform => Shape::Uniform,
            Self::Special { iterations, percent, share } => {
                Shape::Special { iterations, zone: percent / 100.0, widening: 100.0 / (100.0 - share) }
            }
            Self::Gaussian { iterations } => Shape::Gaussian { iterations },
            Self::Pareto { h } => Shape::Pareto { power: libm::log(h) / libm::log(1.0 - h) },
            Self::Zipfian { exponent } => Shape::Zipf(Zipf::new(count, exponent)),
            Self::Scrambled => Shape::Scrambled(ScrambledZipf::new(count)),
            Self::Hotspot { items, draws } => {
                Shape::Hotspot { hot: ((count as f64 * items) as u64).min(count), draws }
            }
            Self::Latest => Shape::Latest(Zipf::new(count, LATEST_EXPONENT)),
        };
        Sampler { low, count, shape }
    }
}

/// Draws items of one range.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampler {
    low: u64,
    count: u64,
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Uniform,
    Special { iterations: u32, zone: f64, widening: f64 },
    Gaussian { iterations: u32 },
    Pareto { power: f64 },
    Zipf(Zipf),
    Scrambled(ScrambledZipf),
    Hotspot { hot: u64, draws: f64 },
    Latest(Zipf),
}

impl Sampler {
    /// The next item.
    pub fn sample(&self, random: &mut Random) -> u64 {
        self.low + self.offset(random).min(self.count - 1)
    }

    fn offset(&self, random: &mut Random) -> u64 {
        let count = self.count as f64;
        match &self.shape {
            Shape::Uniform => random.below(self.count),
            Shape::Special { iterations, zone, widening } => {
                special(random, (self.count - 1) as f64, *iterations, *zone, *widening)
            }
            Shape::Gaussian { iterations } => {
                let sum: f64 = (0..*iterations).map(|_| random.unit() * count).sum();
                (sum * (1.0 / f64::from(*iterations))) as u64
            }
            Shape::Pareto { power } => (count * libm::pow(random.unit(), *power)) as u64,
            Shape::Zipf(zipf) => zipf.sample(random) - 1,
            Shape::Scrambled(zipf) => zipf.sample(random),
            Shape::Hotspot { hot, draws } => {
                let cold = self.count - hot;
                if cold == 0 || (*hot > 0 && random.unit() < *draws) {
                    random.below(*hot)
                } else {
                    hot + random.below(cold)
                }
            }
            Shape::Latest(zipf) => self.count - zipf.sample(random),
        }
    }
}

/// `width` is high - low, not the number of items, as in the original. The uniform number that chose the zone is used
/// again for the position in it. It is then at least 1 / widening, so the first part of the zone is never hit.
fn special(random: &mut Random, width: f64, iterations: u32, zone: f64, widening: f64) -> u64 {
    let unit = random.unit();
    if unit * (width * widening) < width {
        let sum: f64 = (0..iterations).map(|_| random.unit()).sum();
        return (sum * width * (1.0 / f64::from(iterations))) as u64;
    }
    (unit * (width * zone + 1.0) + (width / 2.0 - width * (zone / 2.0))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn draws(name: &str, low: u64, high: u64) -> Vec<u64> {
        let sampler = Distribution::named(name).unwrap().over(low, high);
        let mut random = Random::new(21);
        (0..DRAWS).map(|_| sampler.sample(&mut random)).collect()
    }

    fn share(draws: &[u64], low: u64, high: u64) -> f64 {
        draws.iter().filter(|n| (low..=high).contains(*n)).count() as f64 / draws.len() as f64
    }

    fn near(seen: f64, expected: f64) {
        // Five standard deviations of a share over these draws.
        let bound = 5.0 * (expected * (1.0 - expected) / DRAWS as f64).sqrt();
        assert!((seen - expected).abs() <= bound.max(1e-4), "{seen}, expected {expected}");
    }

    #[test]
    fn every_distribution_stays_in_its_range() {
        for name in Distribution::NAMES {
            for (low, high) in [(1, 1), (5, 6), (1, 10_000), (7, 1_000_000_007)] {
                let drawn = draws(name, low, high);
                assert!(drawn.iter().all(|n| (low..=high).contains(n)), "{name} over {low}..={high}");
            }
        }
    }

    #[test]
    fn uniform_hits_every_tenth_alike() {
        let drawn = draws("uniform", 1, 100_000);
        (0..10).for_each(|tenth| near(share(&drawn, tenth * 10_000 + 1, (tenth + 1) * 10_000), 0.1));
    }

    #[test]
    fn special_has_its_zone_beside_the_middle() {
        let drawn = draws("special", 1, 1_000_000);
        // 75 % of the draws, and those of the bell curve in the zone (density 12 / sqrt(2 pi) at the middle).
        let zone = share(&drawn, 497_500, 505_001);
        assert!((zone - 0.758).abs() < 0.005, "{zone}");
        // Only the bell curve reaches the first quarter of the zone.
        let before = share(&drawn, 495_000, 497_499);
        assert!(before < 0.005, "{before}");
        assert!(share(&drawn, 1, 250_000) < 0.003, "three deviations and more from the middle");
    }

    #[test]
    fn gaussian_is_the_mean_of_twelve() {
        let drawn = draws("gaussian", 0, 999_999);
        let mean = drawn.iter().sum::<u64>() as f64 / DRAWS as f64;
        let variance = drawn.iter().map(|n| (*n as f64 - mean).powi(2)).sum::<f64>() / DRAWS as f64;
        // The standard deviation of the mean of twelve uniform numbers is 1/12.
        assert!(
            (mean - 500_000.0).abs() < 1_000.0 && (variance.sqrt() - 83_333.0).abs() < 800.0,
            "{mean} {variance}"
        );
    }

    #[test]
    fn pareto_gives_four_fifths_to_the_first_fifth() {
        let drawn = draws("pareto", 1, 1_000_000);
        near(share(&drawn, 1, 200_000), 0.8);
        near(share(&drawn, 1, 40_000), 0.64);
    }

    #[test]
    fn zipfian_ranks_from_the_beginning_and_latest_from_the_end() {
        let sum = |exponent: f64| (1..=1_000).map(|n| f64::from(n).powf(-exponent)).sum::<f64>();
        let drawn = draws("zipfian", 11, 1_010);
        near(share(&drawn, 11, 11), 1.0 / sum(0.8));
        near(share(&drawn, 12, 12), 2_f64.powf(-0.8) / sum(0.8));
        let drawn = draws("latest", 11, 1_010);
        near(share(&drawn, 1_010, 1_010), 1.0 / sum(0.99));
        near(share(&drawn, 1_008, 1_008), 3_f64.powf(-0.99) / sum(0.99));
    }

    #[test]
    fn hotspot_gives_four_fifths_to_the_hot_fifth() {
        let drawn = draws("hotspot", 1, 100_000);
        near(share(&drawn, 1, 20_000), 0.8);
        near(share(&drawn, 1, 10_000), 0.4);
        near(share(&drawn, 60_001, 80_000), 0.05);
    }

    #[test]
    fn scrambled_spreads_the_popular_items() {
        let drawn = draws("scrambled", 1, 100_000);
        let mut counts = vec![0_u32; 100_001];
        drawn.iter().for_each(|n| counts[*n as usize] += 1);
        let mut order: Vec<usize> = (1..=100_000).collect();
        order.sort_by_key(|item| std::cmp::Reverse(counts[*item]));
        let hot = order[..100].iter().map(|item| f64::from(counts[*item])).sum::<f64>() / DRAWS as f64;
        assert!((0.15..0.35).contains(&hot), "{hot}");
        assert!(
            order[..100].iter().any(|item| *item > 80_000) && order[..100].iter().any(|item| *item < 20_000)
        );
    }

    #[test]
    fn parameters_are_checked_and_read_from_a_file() {
        let read: Distribution = toml::from_str("type = 'special'\npercent = 2").unwrap();
        assert_eq!(read, Distribution::Special { iterations: 12, percent: 2.0, share: 75.0 });
        assert!(toml::from_str::<Distribution>("type = 'special'\npercnt = 2").is_err());
        assert!(Distribution::Pareto { h: 1.0 }.check().unwrap_err().contains("`h` is 1"));
        for name in Distribution::NAMES {
            Distribution::named(name).unwrap().check().unwrap();
        }
        assert_eq!(Distribution::named("normal"), None);
    }

    #[test]
    fn the_draws_of_a_seed_never_change() {
        let first: Vec<u64> = Distribution::NAMES.iter().map(|name| draws(name, 1, 1_000_000)[7]).collect();
        assert_eq!(first, [103_370, 501_738, 417_450, 1, 598_404, 995_588, 65_377, 752_664]);
    }
}
