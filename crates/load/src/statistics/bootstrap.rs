//! Intervals by resampling moving blocks of one run.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::{Interval, autocorrelation, sorted_quantile};

/// Sokal's window: autocorrelations are summed to the first lag of at least this many times the sum.
const SOKAL_WINDOW: f64 = 5.0;

/// Integrated autocorrelation time of a series in steps: 1 for independent values; n values carry as much as n / time
/// independent ones. With Sokal's window ("Monte Carlo methods in statistical mechanics", 1996).
pub fn autocorrelation_time(series: &[f64]) -> f64 {
    let mut time = 1.0;
    for lag in 1..series.len() {
        time += 2.0 * autocorrelation(series, lag);
        if lag as f64 >= SOKAL_WINDOW * time {
            break;
        }
    }
    time.max(1.0)
}

/// The length of the blocks for a series, in steps: twice its autocorrelation time, at most a quarter of the series.
pub fn block_length(series: &[f64]) -> usize {
    let wanted = (2.0 * autocorrelation_time(series)).ceil() as usize;
    wanted.clamp(1, (series.len() / 4).max(1))
}

/// The percentile interval of a statistic of an autocorrelated series, by drawing whole blocks (Künsch, "The jackknife
/// and the bootstrap for general stationary observations", 1989). The statistic gets the drawn indices. `None` for
/// fewer than eight steps.
pub fn moving_block(
    length: usize,
    block: usize,
    mut statistic: impl FnMut(&[usize]) -> f64,
    confidence: f64,
    resamples: usize,
    seed: u64,
) -> Option<Interval> {
    if length < 8 {
        return None;
    }
    let block = block.clamp(1, length);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut drawn = Vec::with_capacity(length + block);
    let mut estimates: Vec<f64> = (0..resamples)
        .map(|_| {
            drawn.clear();
            while drawn.len() < length {
                let start = rng.random_range(0..=length - block);
                drawn.extend(start..start + block);
            }
            drawn.truncate(length);
            statistic(&drawn)
        })
        .collect();
    estimates.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    Some(Interval { low: sorted_quantile(&estimates, tail), high: sorted_quantile(&estimates, 1.0 - tail) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn autoregressive(phi: f64, length: usize, seed: u64) -> Vec<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut value = 0.0;
        (0..length)
            .map(|_| {
                let noise: f64 = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
                value = phi * value + noise;
                value
            })
            .collect()
    }

    /// The time of an AR(1) process is (1 + phi) / (1 - phi).
    #[test]
    fn autocorrelation_time_of_a_known_process() {
        for (phi, expected) in [(0.0, 1.0), (0.5, 3.0), (0.8, 9.0)] {
            let found = autocorrelation_time(&autoregressive(phi, 20_000, 5));
            assert!((found / expected - 1.0).abs() < 0.2, "{found} for {expected}");
        }
    }

    #[test]
    fn blocks_widen_the_interval_of_a_correlated_series() {
        let series = autoregressive(0.8, 400, 11);
        let of = |block| {
            let statistic =
                |drawn: &[usize]| drawn.iter().map(|i| series[*i]).sum::<f64>() / drawn.len() as f64;
            let interval = moving_block(series.len(), block, statistic, 0.95, 2_000, 1).unwrap();
            interval.high - interval.low
        };
        assert!(of(block_length(&series)) > 2.0 * of(1), "an AR(1) of 0.8 needs three times the width");
    }
}
