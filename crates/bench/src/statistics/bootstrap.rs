//! Intervals by resampling: BCa over independent values (blocks, runs) and moving blocks within one run.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use statrs::distribution::ContinuousCDF;

use super::{Interval, autocorrelation, normal, normal_quantile, sorted_quantile};

/// Resamples behind every printed interval.
pub const RESAMPLES: usize = 10_000;
/// Sokal's window: autocorrelations are summed to the first lag of at least this many times the sum.
const SOKAL_WINDOW: f64 = 5.0;

/// Bias-corrected and accelerated interval of a statistic of independent values (Efron, "Better bootstrap confidence
/// intervals", JASA 1987; Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 14). `None` for
/// fewer than two values. Values without any spread give an interval of width zero.
pub fn bca(
    values: &[f64],
    statistic: impl Fn(&mut [f64]) -> f64,
    confidence: f64,
    resamples: usize,
    seed: u64,
) -> Option<Interval> {
    if values.len() < 2 {
        return None;
    }
    let point = statistic(&mut values.to_vec());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut sample = values.to_vec();
    let mut estimates: Vec<f64> = (0..resamples)
        .map(|_| {
            for place in &mut sample {
                *place = values[rng.random_range(0..values.len())];
            }
            statistic(&mut sample)
        })
        .collect();
    estimates.sort_unstable_by(f64::total_cmp);
    let below = estimates.partition_point(|e| *e < point);
    let equal = estimates.partition_point(|e| *e <= point) - below;
    // Estimates that equal the point count half, else a statistic with few possible values is corrected for nothing.
    let share = (below as f64 + equal as f64 / 2.0) / resamples as f64;
    let bias = normal_quantile(share.clamp(0.5 / resamples as f64, 1.0 - 0.5 / resamples as f64));
    let acceleration = acceleration(values, &statistic);
    let bound = |tail: f64| {
        let z = bias + normal_quantile(tail);
        sorted_quantile(&estimates, normal().cdf(bias + z / (1.0 - acceleration * z)))
    };
    let tail = (1.0 - confidence) / 2.0;
    Some(Interval { low: bound(tail), high: bound(1.0 - tail) })
}

/// From the jackknife: a sixth of the skewness of the estimates that leave one value out.
fn acceleration(values: &[f64], statistic: &impl Fn(&mut [f64]) -> f64) -> f64 {
    let without: Vec<f64> = (0..values.len())
        .map(|skipped| {
            let mut others = values.to_vec();
            others.swap_remove(skipped);
            statistic(&mut others)
        })
        .collect();
    let mean = super::mean(&without);
    let squares: f64 = without.iter().map(|v| (mean - v).powi(2)).sum();
    let cubes: f64 = without.iter().map(|v| (mean - v).powi(3)).sum();
    if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 }
}

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

/// Length of the blocks for a series, steps: twice its autocorrelation time, at most a quarter of it.
pub fn block_length(series: &[f64]) -> usize {
    let wanted = (2.0 * autocorrelation_time(series)).ceil() as usize;
    wanted.clamp(1, (series.len() / 4).max(1))
}

/// Percentile interval of a statistic of a series whose neighbours resemble each other: whole blocks of it are drawn
/// (Künsch, "The jackknife and the bootstrap for general stationary observations", 1989). The statistic gets the
/// drawn indices. `None` for fewer than eight steps.
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
    use super::super::mean;
    use super::*;
    use proptest::prelude::*;

    const EVEN: [f64; 10] = [0.012, -0.031, 0.044, 0.021, -0.008, 0.017, 0.052, 0.003, 0.029, -0.014];
    const SKEWED: [f64; 12] = [1.2, 3.4, 0.7, 8.9, 2.2, 1.9, 15.3, 0.4, 4.4, 2.8, 1.1, 6.0];

    /// Reference: scipy.stats.bootstrap, method BCa, 200,000 resamples.
    #[test]
    fn bca_agrees_with_scipy() {
        let of = |values: &[f64]| bca(values, |v| mean(v), 0.95, 20_000, 1).unwrap();
        let even = of(&EVEN);
        assert!((even.low + 0.0030).abs() < 6e-4 && (even.high - 0.0274).abs() < 6e-4, "{even:?}");
        let skewed = of(&SKEWED);
        assert!((skewed.low - 2.308).abs() < 0.08 && (skewed.high - 7.467).abs() < 0.2, "{skewed:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let of = |seed| bca(&SKEWED, |v| mean(v), 0.95, 500, seed).unwrap();
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }

    #[test]
    fn values_without_spread_have_no_width() {
        let interval = bca(&[2.0; 9], |v| mean(v), 0.95, 200, 1).unwrap();
        assert_eq!((interval.low, interval.high), (2.0, 2.0));
        assert_eq!(bca(&[1.0], |v| mean(v), 0.95, 200, 1), None);
    }

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

    proptest! {
        #[test]
        fn an_interval_lies_within_the_values(values in prop::collection::vec(-1e3_f64..1e3, 2..20), seed in 0_u64..100) {
            let interval = bca(&values, |v| mean(v), 0.95, 200, seed).unwrap();
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(interval.low <= interval.high);
            prop_assert!(interval.low >= low - 1e-9 && interval.high <= high + 1e-9);
        }
    }
}
