//! Detects regular stalls: flush, checkpoint, garbage collection, compaction, a scheduled job.

use super::{autocorrelation, deviation, mean, median};

/// The smallest number of seconds to look at.
const SECONDS_MIN: usize = 30;
/// A second is a stall when its value is this many times the median.
const STALL_FACTOR: f64 = 2.0;
/// The smallest number of stalls of a pattern.
const STALLS_MIN: usize = 4;
/// The largest spread of the distances, as a share of the mean distance.
const IRREGULARITY_MAX: f64 = 0.2;
/// The largest share of seconds that may be stalls. A larger share is the normal state.
const SHARE_MAX: f64 = 0.4;

/// A pattern of regular stalls.
#[derive(Debug, Clone, PartialEq)]
pub struct StallPattern {
    /// The mean distance of stalls, seconds.
    pub period_s: f64,
    /// The mean length of stalls, seconds.
    pub length_s: f64,
    /// The number of stalls.
    pub count: usize,
    /// The median value within stalls divided by the median outside.
    pub factor: f64,
    /// The autocorrelation at the period.
    pub autocorrelation: f64,
    /// The indices of the seconds within stalls.
    pub seconds: Vec<usize>,
}

/// Looks for regular stalls in one value per second for which high is bad (p99). The autocorrelation at the distance of
/// the stalls must exceed the bound 3 / sqrt(n) for noise (Bartlett, 1946; Box and Jenkins, "Time Series Analysis",
/// chapter 2).
pub fn find(values: &[f64]) -> Option<StallPattern> {
    if values.len() < SECONDS_MIN {
        return None;
    }
    let usual = median(values);
    let is_stall: Vec<bool> = values.iter().map(|v| *v > usual * STALL_FACTOR).collect();
    let seconds: Vec<usize> = (0..values.len()).filter(|i| is_stall[*i]).collect();
    let starts: Vec<usize> = seconds.iter().copied().filter(|i| *i == 0 || !is_stall[i - 1]).collect();
    if starts.len() < STALLS_MIN || seconds.len() as f64 > SHARE_MAX * values.len() as f64 {
        return None;
    }
    let distances: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let period_s = mean(&distances);
    // A period that is not a whole number of seconds shifts by one second now and then.
    let allowed = (IRREGULARITY_MAX * period_s).max(0.6);
    if period_s < 3.0 || deviation(&distances) > allowed {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|v| v.max(1e-9).ln()).collect();
    let near = period_s.round() as usize;
    let autocorrelation =
        (near.saturating_sub(1)..=near + 1).map(|lag| autocorrelation(&logs, lag)).fold(f64::MIN, f64::max);
    if autocorrelation < 3.0 / (values.len() as f64).sqrt() {
        return None;
    }
    let pick = |wanted: bool| -> Vec<f64> {
        values.iter().zip(&is_stall).filter(|(_, stall)| **stall == wanted).map(|(v, _)| *v).collect()
    };
    Some(StallPattern {
        period_s,
        length_s: seconds.len() as f64 / starts.len() as f64,
        count: starts.len(),
        factor: median(&pick(true)) / median(&pick(false)),
        autocorrelation,
        seconds,
    })
}

/// The agreement of a series of the target with the stalls: the correlation of its values with being in a stall, -1 to
/// 1. Growing counters must be given as differences.
pub fn agreement(stall_pattern: &StallPattern, series: &[f64]) -> f64 {
    let stalls: Vec<f64> = (0..series.len())
        .map(|i| f64::from(u8::from(stall_pattern.seconds.binary_search(&i).is_ok())))
        .collect();
    let spread = deviation(series) * deviation(&stalls) * (series.len().max(2) - 1) as f64;
    if spread <= 0.0 {
        return 0.0;
    }
    let (mean_series, mean_stalls) = (mean(series), mean(&stalls));
    series.iter().zip(&stalls).map(|(a, b)| (a - mean_series) * (b - mean_stalls)).sum::<f64>() / spread
}

impl StallPattern {
    /// The finding as a sentence; `what` names the value, `with` the series of the target that agree.
    pub fn sentence(&self, what: &str, with: &[&str]) -> String {
        let moves = match with {
            [] => "look for what the target does at that distance (flush, checkpoint, compaction, garbage collection)"
                .to_owned(),
            [name] => format!("{name} moves with it"),
            names => format!("{} move with it", names.join(", ")),
        };
        format!(
            "every {:.0} s {what} rises to {:.1} times its usual value for about {:.0} s ({} times, autocorrelation {:.2}): {moves}",
            self.period_s,
            self.factor,
            self.length_s.max(1.0),
            self.count,
            self.autocorrelation
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    fn series(length: usize, seed: u64, is_stall: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..length)
            .map(|i| (if is_stall(i) { 40.0 } else { 2.0 }) * (0.8 + 0.4 * rng.random::<f64>()))
            .collect()
    }

    #[test]
    fn a_flush_every_ten_seconds_is_found_and_said() {
        let values = series(120, 1, |i| i % 10 == 3);
        let stall_pattern = find(&values).unwrap();
        assert_eq!((stall_pattern.period_s, stall_pattern.count), (10.0, 12));
        assert!((15.0..25.0).contains(&stall_pattern.factor), "{stall_pattern:?}");
        let flushed: Vec<f64> = (0..120).map(|i| if i % 10 == 3 { 5e6 } else { 1e5 }).collect();
        assert!(agreement(&stall_pattern, &flushed) > 0.95);
        let sentence = stall_pattern.sentence("p99", &["mysql.Innodb_pages_flushed"]);
        assert!(
            sentence.starts_with("every 10 s p99 rises to")
                && sentence.contains("Innodb_pages_flushed moves"),
            "{sentence}"
        );
    }

    #[test]
    fn a_period_between_whole_seconds_is_found() {
        let values = series(200, 2, |i| (i as f64 % 7.4) < 1.0);
        let stall_pattern = find(&values).unwrap();
        assert!((stall_pattern.period_s - 7.4).abs() < 0.2, "{stall_pattern:?}");
    }

    proptest! {
        #[test]
        fn noise_has_no_rhythm(seed in 0_u64..500) {
            prop_assert_eq!(find(&series(120, seed, |_| false)), None);
        }

        #[test]
        fn stalls_at_random_have_no_rhythm(seed in 0_u64..200) {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let stalls: Vec<bool> = (0..240).map(|_| rng.random::<f64>() < 0.06).collect();
            prop_assert_eq!(find(&series(240, seed, |i| stalls[i])), None);
        }
    }
}
