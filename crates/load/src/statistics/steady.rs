//! Finds the end of the warm-up, and checks whether a run is steady.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::bootstrap::autocorrelation_time;
use super::{Interval, mean};

/// The number of steps in a batch of MSER-5. Runs too short for `BATCHES_MIN` of them have smaller batches.
const BATCH: usize = 5;
const BATCHES_MIN: usize = 20;
/// The last batches always agree with themselves, so the rule ignores cuts among them.
const BATCHES_LEFT_OUT: usize = 5;
/// Of all cuts whose error is within this share of the smallest, the earliest is taken. On a level series the best cut
/// may lie anywhere.
const INDIFFERENCE: f64 = 0.1;
/// The smallest number of steps to look at.
pub const STEPS_MIN: usize = 20;
/// The largest change of the mean over the steady part, as a share of it. fio's rule, a slope below 0.3 % of the mean
/// per second, allows 18 % in a minute.
pub const DRIFT_MAX: f64 = 0.05;
/// The largest change of the median latency over the steady part, as a factor less one.
pub const LATENCY_DRIFT_MAX: f64 = 0.25;

/// A straight line through a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrendLine {
    /// Change per step.
    pub slope: f64,
    /// Value at the first step.
    pub start: f64,
    /// The 95 % interval of the slope, widened for autocorrelated values.
    pub interval: Interval,
}

/// The result of the search.
#[derive(Debug, Clone, PartialEq)]
pub enum Steadiness {
    /// Steady from a step on.
    From {
        /// The first steady step.
        step: usize,
        /// Change over the steady part, as a share of the mean.
        drift: f64,
    },
    /// Not steady.
    None {
        /// The trend, as text.
        trend: String,
        /// The change over the last half, as a share of the mean.
        drift: f64,
    },
    /// Fewer than `STEPS_MIN` steps.
    TooShort,
}

/// The step at which the warm-up ends: the cut that minimises the standard error of the mean of the rest (MSER-5:
/// White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 1997; batches of five
/// steps: Spratt, 1998). `None` if the best cut lies in the second half, where the rule is not reliable.
pub fn mser5(series: &[f64]) -> Option<usize> {
    let batch = (series.len() / BATCHES_MIN).clamp(1, BATCH);
    let batches: Vec<f64> = series.chunks_exact(batch).map(mean).collect();
    let count = batches.len();
    let error = |cut: usize| {
        let rest = &batches[cut..];
        let mean = mean(rest);
        rest.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    let cuts = 0..count.saturating_sub(BATCHES_LEFT_OUT);
    let best = cuts.clone().map(error).min_by(f64::total_cmp)?;
    let cut = cuts.into_iter().find(|cut| error(*cut) <= best * (1.0 + INDIFFERENCE))?;
    (cut <= count / 2).then_some(cut * batch)
}

/// The least squares line. Its interval treats n values as n / autocorrelation time independent ones. `None` for fewer
/// than three steps.
pub fn line(series: &[f64]) -> Option<TrendLine> {
    let count = series.len() as f64;
    if series.len() < 3 {
        return None;
    }
    let (middle, mean) = ((count - 1.0) / 2.0, mean(series));
    let spread: f64 = (0..series.len()).map(|i| (i as f64 - middle).powi(2)).sum();
    let slope =
        series.iter().enumerate().map(|(i, y)| (i as f64 - middle) * (y - mean)).sum::<f64>() / spread;
    let start = mean - slope * middle;
    let residuals: Vec<f64> = series.iter().enumerate().map(|(i, y)| y - start - slope * i as f64).collect();
    let time = autocorrelation_time(&residuals);
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let error = (squares / (count - 2.0) / spread * time).sqrt();
    let freedom = (count / time - 2.0).max(1.0);
    let t = StudentsT::new(0.0, 1.0, freedom).expect("BUG: freedom is positive").inverse_cdf(0.975);
    Some(TrendLine { slope, start, interval: Interval { low: slope - t * error, high: slope + t * error } })
}

/// Looks for the steady part of a run in its operations per second and its median latency (microseconds), step by step.
/// Both must be past their warm-up, and neither may drift.
pub fn find(rate_per_s: &[f64], p50_us: &[f64]) -> Steadiness {
    if rate_per_s.len() < STEPS_MIN {
        return Steadiness::TooShort;
    }
    let logs: Vec<f64> = p50_us.iter().map(|us| us.max(1.0).ln()).collect();
    let latency_cut = if logs.len() < STEPS_MIN { Some(0) } else { mser5(&logs) };
    let cuts = (mser5(rate_per_s), latency_cut);
    let step = match cuts {
        (Some(rate), Some(latency)) => rate.max(latency),
        // No cut gives a level series, so the trend of the second half is reported.
        _ => rate_per_s.len() / 2,
    };
    let rate_drift = drift(&rate_per_s[step..], mean(&rate_per_s[step..]));
    let latency_drift = logs.get(step..).map_or((0.0, false), |logs| drift(logs, 1.0));
    let seconds = rate_per_s.len() - step;
    let (change, is_real) = rate_drift;
    if is_real && change.abs() > DRIFT_MAX {
        let direction = if change < 0.0 { "falls" } else { "rises" };
        let trend = format!(
            "throughput still {direction}, by {:.1} % over the last {seconds} s; a longer run may come to rest",
            change.abs() * 100.0
        );
        return Steadiness::None { trend, drift: change };
    }
    if change.abs() > DRIFT_MAX {
        let trend = format!(
            "throughput varies too much to say whether it drifts: {:+.1} % over the last {seconds} s, which may be chance",
            change * 100.0
        );
        return Steadiness::None { trend, drift: change };
    }
    let (change_of_log, is_real) = latency_drift;
    let factor = change_of_log.exp();
    let allowed = 1.0 / (1.0 + LATENCY_DRIFT_MAX)..=1.0 + LATENCY_DRIFT_MAX;
    if is_real && !allowed.contains(&factor) {
        let trend = if factor > 1.0 {
            format!(
                "the median latency still grows, by the factor {factor:.2} over the last {seconds} s: so does a queue that \
                 grows, and so does a machine that slows down"
            )
        } else {
            format!(
                "the median latency still falls, by the factor {:.2} over the last {seconds} s",
                1.0 / factor
            )
        };
        return Steadiness::None { trend, drift: change };
    }
    if cuts == (None, None) {
        let trend = "throughput and latency change until the end without a direction".to_owned();
        return Steadiness::None { trend, drift: change };
    }
    Steadiness::From { step, drift: change }
}

/// The change over the whole series as a share of a scale, and whether its interval excludes zero.
fn drift(series: &[f64], scale: f64) -> (f64, bool) {
    let Some(line) = line(series).filter(|_| scale > 0.0) else { return (0.0, false) };
    (line.slope * (series.len() - 1) as f64 / scale, !line.interval.contains(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    fn noisy(length: usize, seed: u64, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..length).map(|i| level(i) * (1.0 + 0.02 * (rng.random::<f64>() - 0.5))).collect()
    }

    /// Reference: scipy.stats.linregress.
    #[test]
    fn the_line_is_that_of_least_squares() {
        let line = line(&[3.0, 5.0, 4.0, 6.0, 7.0, 6.0, 8.0, 9.0]).unwrap();
        assert!(
            (line.slope - 0.761_904_761_9).abs() < 1e-9 && (line.start - 3.333_333_333).abs() < 1e-8,
            "{line:?}"
        );
        assert!(!line.interval.contains(0.0));
    }

    #[test]
    fn a_warm_up_is_cut_off() {
        let rate = noisy(120, 1, |i| if i < 20 { 400.0 + 30.0 * i as f64 } else { 1_000.0 });
        let p50 = noisy(120, 2, |i| if i < 10 { 900.0 } else { 300.0 });
        let Steadiness::From { step, drift } = find(&rate, &p50) else { panic!("{:?}", find(&rate, &p50)) };
        assert!((20..=25).contains(&step), "{step}");
        assert!(drift.abs() < DRIFT_MAX);
    }

    #[test]
    fn a_level_run_is_steady_from_its_begin() {
        let found = find(&noisy(60, 3, |_| 1_000.0), &noisy(60, 4, |_| 300.0));
        assert!(matches!(found, Steadiness::From { step, .. } if step <= 30), "{found:?}");
    }

    #[test]
    fn a_run_that_continues_to_fall_is_not_steady() {
        let rate = noisy(300, 5, |i| 150_000.0 * (1.0 - 0.002 * i as f64));
        let Steadiness::None { trend, drift } = find(&rate, &noisy(300, 6, |_| 300.0)) else {
            panic!("a fall by 60 % is not a steady state")
        };
        assert!(trend.contains("throughput still falls") && drift < -0.2, "{trend} {drift}");
    }

    #[test]
    fn a_queue_that_grows_is_not_steady() {
        let p50 = noisy(100, 8, |i| 1_000.0 * (1.0 + i as f64));
        let Steadiness::None { trend, .. } = find(&noisy(100, 7, |_| 1_000.0), &p50) else {
            panic!("latency grows by a second each second")
        };
        assert!(trend.contains("a queue that grows"), "{trend}");
    }

    #[test]
    fn a_drift_that_may_be_chance_is_not_called_steady() {
        // The series has long swings: it ends low, and may rise again.
        let rate = noisy(60, 9, |i| 1_000.0 * (1.0 + 0.5 * (i as f64 / 6.0).sin()));
        let found = find(&rate, &noisy(60, 10, |_| 300.0));
        if let Steadiness::From { drift, .. } = found {
            assert!(drift.abs() <= DRIFT_MAX, "{drift}");
        }
        let uneven = noisy(40, 9, |i| if [22, 25, 36, 38, 39].contains(&i) { 300.0 } else { 1_000.0 });
        let Steadiness::None { trend, .. } = find(&uneven, &noisy(40, 10, |_| 300.0)) else {
            panic!("{uneven:?}")
        };
        assert!(trend.contains("throughput"), "{trend}");
    }

    #[test]
    fn few_steps_tell_nothing() {
        assert_eq!(find(&[1.0; 10], &[1.0; 10]), Steadiness::TooShort);
    }

    proptest! {
        #[test]
        fn the_cut_does_not_depend_on_the_unit(seed in 0_u64..200, factor in 0.001_f64..1_000.0, length in 30_usize..200) {
            let series = noisy(length, seed, |i| if i < 15 { 50.0 } else { 100.0 });
            let scaled: Vec<f64> = series.iter().map(|v| v * factor).collect();
            prop_assert_eq!(mser5(&series), mser5(&scaled));
        }
    }
}
