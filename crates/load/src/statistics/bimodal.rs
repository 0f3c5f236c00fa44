//! Detects latencies with two modes and nothing between them: a cache that hits or misses, a token bucket that admits
//! or delays.

use super::Distribution;

/// The number of bins of the logarithm of latency per decade.
const BINS_PER_DECADE: f64 = 10.0;
const BINS: usize = 100;
/// The smallest number of samples to look at.
const SAMPLES_MIN: u64 = 500;
/// The smallest share of samples in the smaller mode.
const SHARE_MIN: f64 = 0.01;
/// The smallest distance of the two modes, as a factor.
const DISTANCE_MIN: f64 = 4.0;
/// The emptiest bin between them must hold less than this share of the lower peak.
const VALLEY_MAX: f64 = 0.1;

/// Two modes of latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoModes {
    /// The median of the faster mode, microseconds.
    pub fast_us: f64,
    /// The median of the slower mode, microseconds.
    pub slow_us: f64,
    /// The share of the slower mode.
    pub slow_share: f64,
}

/// Looks for a valley between two peaks of the distribution on a logarithmic scale (the valley criterion of mode
/// seeking: Silverman, "Density Estimation", 1986, chapter 6.4).
pub fn find(distribution: &Distribution) -> Option<TwoModes> {
    let samples = distribution.samples();
    if samples < SAMPLES_MIN {
        return None;
    }
    let bins = bins(distribution);
    let (fast_peak, valley, slow_peak) = deepest_valley(&bins)?;
    let lower_peak = bins[fast_peak].min(bins[slow_peak]);
    let distance = 10_f64.powf((slow_peak - fast_peak) as f64 / BINS_PER_DECADE);
    let slow: f64 = bins[valley..].iter().sum();
    let slow_share = slow / samples as f64;
    let is_two = bins[valley] < VALLEY_MAX * lower_peak
        && distance >= DISTANCE_MIN
        && (SHARE_MIN..=1.0 - SHARE_MIN).contains(&slow_share);
    is_two.then(|| TwoModes {
        fast_us: distribution.quantile_us((1.0 - slow_share) / 2.0) as f64,
        slow_us: distribution.quantile_us(1.0 - slow_share / 2.0) as f64,
        slow_share,
    })
}

fn bins(distribution: &Distribution) -> Vec<f64> {
    let mut bins = vec![0.0; BINS];
    for (value, count) in distribution.buckets() {
        let bin = ((*value as f64).log10() * BINS_PER_DECADE) as usize;
        bins[bin.min(BINS - 1)] += *count as f64;
    }
    bins
}

/// The bin with the largest distance below the lower of the highest peaks on both sides.
fn deepest_valley(bins: &[f64]) -> Option<(usize, usize, usize)> {
    let highest = |range: std::ops::Range<usize>| range.max_by(|a, b| bins[*a].total_cmp(&bins[*b]));
    (1..bins.len().saturating_sub(1))
        .filter_map(|valley| Some((highest(0..valley)?, valley, highest(valley + 1..bins.len())?)))
        .max_by(|a, b| depth(bins, *a).total_cmp(&depth(bins, *b)))
}

fn depth(bins: &[f64], (fast, valley, slow): (usize, usize, usize)) -> f64 {
    bins[fast].min(bins[slow]) - bins[valley]
}

impl TwoModes {
    /// The finding as a sentence; `what` names the operations.
    pub fn sentence(&self, what: &str) -> String {
        format!(
            "{what} is of two kinds with almost nothing between them: {:.1} % near {} and {:.1} % near {}; a quota (token \
             bucket), a cache that misses, or a queue that is full now and then looks like this, and no mean or single \
             percentile describes it",
            (1.0 - self.slow_share) * 100.0,
            milliseconds(self.fast_us),
            self.slow_share * 100.0,
            milliseconds(self.slow_us)
        )
    }
}

fn milliseconds(us: f64) -> String {
    if us >= 10_000.0 { format!("{:.0} ms", us / 1e3) } else { format!("{:.2} ms", us / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    fn log_normal(distribution: &mut Distribution, centre_us: f64, sigma: f64, count: u64, seed: u64) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..count {
            let normal: f64 = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
            distribution.add((centre_us * (sigma * normal).exp()) as u64, 1);
        }
    }

    /// A cloud disk with an exhausted quota of operations: p90 2.2 ms, p95 79 ms.
    #[test]
    fn a_token_bucket_is_found() {
        let mut distribution = Distribution::default();
        log_normal(&mut distribution, 2_200.0, 0.2, 93_000, 1);
        log_normal(&mut distribution, 79_000.0, 0.05, 7_000, 2);
        let found = find(&distribution).unwrap();
        assert!((found.slow_share - 0.07).abs() < 0.005, "{found:?}");
        assert!(
            (found.fast_us / 2_200.0 - 1.0).abs() < 0.05 && (found.slow_us / 79_000.0 - 1.0).abs() < 0.05
        );
        assert!(found.sentence("response time").contains("7.0 % near 79 ms"), "{}", found.sentence("x"));
    }

    proptest! {
        #[test]
        fn one_wide_hump_is_one_kind(centre in 100.0_f64..100_000.0, sigma in 0.1_f64..1.2, seed in 0_u64..100) {
            let mut distribution = Distribution::default();
            log_normal(&mut distribution, centre, sigma, 5_000, seed);
            prop_assert_eq!(find(&distribution), None);
        }
    }

    #[test]
    fn a_few_outliers_are_no_kind() {
        let mut distribution = Distribution::default();
        log_normal(&mut distribution, 500.0, 0.3, 10_000, 3);
        distribution.add(200_000, 20);
        assert_eq!(find(&distribution), None);
    }
}
