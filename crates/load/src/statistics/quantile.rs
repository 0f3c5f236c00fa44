//! Intervals of a quantile of one run.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::Distribution;
use super::Interval;
use super::bootstrap::moving_block;

/// The number of values that a resampled quantile can take.
const GRID: usize = 256;

/// The interval of a quantile by order statistics (Conover, "Practical Nonparametric Statistics", chapter 3.2): the
/// ranks between which the binomial count of samples below the quantile stays. It holds for independent samples, so
/// `samples / autocorrelation_time` samples are assumed. `None` if the ranks exceed the ends.
pub fn order_statistics(
    distribution: &Distribution,
    quantile: f64,
    confidence: f64,
    autocorrelation_time: f64,
) -> Option<Interval> {
    let samples = (distribution.samples() as f64 / autocorrelation_time.max(1.0)) as u64;
    let binomial = Binomial::new(quantile, samples).ok().filter(|_| samples > 0)?;
    let tail = (1.0 - confidence) / 2.0;
    let (low, high) = (binomial.inverse_cdf(tail), binomial.inverse_cdf(1.0 - tail) + 1);
    (low >= 1 && high <= samples).then(|| {
        let at = |rank: u64| distribution.quantile_us(rank as f64 / samples as f64) as f64;
        Interval { low: at(low), high: at(high) }
    })
}

/// The interval of a quantile of a run in microseconds, by drawing and merging blocks of its seconds. It holds if
/// samples of one second are correlated. `None` for fewer than eight seconds.
pub fn from_seconds(
    seconds: &[&Distribution],
    quantile: f64,
    block: usize,
    confidence: f64,
    resamples: usize,
    seed: u64,
) -> Option<Interval> {
    let grid = grid(seconds, quantile);
    let samples: Vec<u64> = seconds.iter().map(|d| d.samples()).collect();
    // For each second, the number of samples up to each value of the grid. The sums over the drawn seconds give the
    // quantile.
    let at_most: Vec<Vec<u64>> = seconds.iter().map(|d| counts_at_most(d, &grid)).collect();
    let statistic = |drawn: &[usize]| {
        let total: u64 = drawn.iter().map(|i| samples[*i]).sum();
        let rank = (quantile * total as f64).ceil() as u64;
        let reached = |step: usize| drawn.iter().map(|i| at_most[*i][step]).sum::<u64>() >= rank;
        let steps: Vec<usize> = (0..grid.len()).collect();
        let step = steps.partition_point(|step| !reached(*step));
        grid.get(step).or(grid.last()).map_or(f64::NAN, |value| *value as f64)
    };
    moving_block(seconds.len(), block, statistic, confidence, resamples, seed)
}

/// The values around the quantile, denser near it.
fn grid(seconds: &[&Distribution], quantile: f64) -> Vec<u64> {
    let mut whole = Distribution::default();
    seconds.iter().for_each(|d| whole.merge(d));
    let mut grid: Vec<u64> = (0..=GRID)
        .map(|step| {
            let place = step as f64 / GRID as f64 * 2.0 - 1.0;
            let side = if place < 0.0 { quantile } else { 1.0 - quantile };
            whole.quantile_us(quantile + side * place.powi(3))
        })
        .collect();
    grid.dedup();
    grid
}

fn counts_at_most(distribution: &Distribution, grid: &[u64]) -> Vec<u64> {
    let mut buckets = distribution.buckets().iter().peekable();
    let mut seen = 0;
    grid.iter()
        .map(|limit| {
            while let Some((_, count)) = buckets.next_if(|(value, _)| value <= limit) {
                seen += count;
            }
            seen
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(samples: u64) -> Distribution {
        let mut distribution = Distribution::default();
        (1..=samples).for_each(|value| distribution.add(value, 1));
        distribution
    }

    /// References: scipy.stats.binom.ppf([0.025, 0.975], n, q) is (983, 996) and (40, 60).
    #[test]
    fn ranks_are_those_of_the_binomial() {
        let of = |samples, quantile| order_statistics(&uniform(samples), quantile, 0.95, 1.0).unwrap();
        assert_eq!(of(1_000, 0.99), Interval { low: 983.0, high: 997.0 });
        assert_eq!(of(100, 0.5), Interval { low: 40.0, high: 61.0 });
    }

    #[test]
    fn too_few_samples_have_no_interval() {
        assert_eq!(order_statistics(&uniform(100), 0.999, 0.95, 1.0), None);
        assert_eq!(order_statistics(&Distribution::default(), 0.5, 0.95, 1.0), None);
        assert!(order_statistics(&uniform(1_000), 0.99, 0.95, 1.0).is_some());
        assert_eq!(
            order_statistics(&uniform(1_000), 0.99, 0.95, 10.0),
            None,
            "a tenth of them is independent"
        );
    }

    #[test]
    fn seconds_that_differ_widen_the_interval() {
        let steady: Vec<Distribution> = (0..40).map(|_| uniform(1_000)).collect();
        let uneven: Vec<Distribution> =
            (0..40).map(|i| uniform(if i % 10 == 0 { 2_000 } else { 1_000 })).collect();
        let width = |seconds: &[Distribution]| {
            let seconds: Vec<&Distribution> = seconds.iter().collect();
            let interval = from_seconds(&seconds, 0.99, 1, 0.95, 400, 1).unwrap();
            let mut whole = Distribution::default();
            seconds.iter().for_each(|d| whole.merge(d));
            assert!(interval.contains(whole.quantile_us(0.99) as f64), "{interval:?}");
            interval.high - interval.low
        };
        assert!(width(&steady) < 2.0 && width(&uneven) > 30.0);
    }
}
