//! Whether the generator really sent at random: the Anderson-Darling test of the gaps between sends against an
//! exponential distribution.

/// Gaps that are looked at, evenly picked: with millions the test would object to the resolution of the clock.
pub const GAPS_MAX: usize = 2_000;
/// Critical value at 1 % for an exponential whose mean is estimated (D'Agostino and Stephens, "Goodness-of-fit
/// techniques", 1986, table 4.14), for the statistic times 1 + 0.6 / n.
pub const CRITICAL_1_PERCENT: f64 = 1.959;

/// The Anderson-Darling statistic against an exponential with the mean of the gaps, times 1 + 0.6 / n. `None` for fewer
/// than eight gaps or none above zero.
pub fn anderson_darling(gaps: &[f64]) -> Option<f64> {
    let mean = super::mean(gaps);
    if gaps.len() < 8 || mean.is_nan() || mean <= 0.0 {
        return None;
    }
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len();
    let sum: f64 = (0..count)
        .map(|i| {
            // A gap of zero has logarithm minus infinity; a clock tick cannot be told from it.
            let below = (-(-sorted[i] / mean).exp_m1()).max(1e-12).ln();
            let above = -sorted[count - 1 - i] / mean;
            (2 * i + 1) as f64 * (below + above)
        })
        .sum();
    let statistic = -(count as f64) - sum / count as f64;
    Some(statistic * (1.0 + 0.6 / count as f64))
}

/// Whether send times (nanoseconds, ascending) look like a Poisson process; `true` when there are too few to say.
pub fn are_poisson(sent_ns: &[u64]) -> bool {
    let gaps: Vec<f64> = sent_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    let stride = gaps.len().div_ceil(GAPS_MAX).max(1);
    let picked: Vec<f64> = gaps.into_iter().step_by(stride).collect();
    anderson_darling(&picked).is_none_or(|statistic| statistic < CRITICAL_1_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Arrivals, Schedule};

    /// Reference: scipy.stats.anderson(values, "expon") gives 0.135077 before the factor.
    #[test]
    fn the_statistic_is_that_of_scipy() {
        let gaps = [0.12, 0.5, 1.3, 0.04, 2.2, 0.9, 0.33, 0.71, 1.9, 0.05, 0.6, 3.1, 0.27, 0.44, 1.05];
        let found = anderson_darling(&gaps).unwrap() / (1.0 + 0.6 / 15.0);
        assert!((found - 0.135_076_993_254).abs() < 1e-9, "{found}");
        assert_eq!(anderson_darling(&[1.0; 3]), None);
    }

    #[test]
    fn the_schedule_passes_and_bursts_do_not() {
        let times = |arrivals, seed| -> Vec<u64> {
            Schedule::new(arrivals, 50, 10_000.0, seed).take(20_000).map(|planned| planned.at_ns).collect()
        };
        let passed = (0..40).filter(|seed| are_poisson(&times(Arrivals::Poisson, *seed))).count();
        assert!(passed >= 37, "{passed} of 40; 1 % may fail");
        // A limiter that refills every 20 ms sends in bursts.
        let bursts: Vec<u64> =
            times(Arrivals::Poisson, 1).iter().map(|at| at / 20_000_000 * 20_000_000).collect();
        assert!(!are_poisson(&bursts));
        let even: Vec<u64> = (0..20_000).map(|i| i * 100_000).collect();
        assert!(!are_poisson(&even));
    }
}
