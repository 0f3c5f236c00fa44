//! Compares two arms by the logarithms of their ratios in blocks that ran back to back.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

use super::{Interval, median_of};

/// The change of throughput that counts as none.
pub const THROUGHPUT_MARGIN: f64 = 0.02;
/// The change of p99 that counts as none.
pub const P99_MARGIN: f64 = 0.05;
/// The smallest number of blocks of a comparison. From six on the 95 % interval comes from the signed-rank test; with
/// two more it is not the whole range of the blocks.
pub const BLOCKS_MIN: usize = 8;
/// The largest number of blocks for which the rank distribution is computed. Beyond it the normal approximation is
/// right to three digits.
const BLOCKS_EXACT: usize = 200;

/// The direction that is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better: throughput.
    Higher,
    /// Less is better: latency, CPU per operation.
    Lower,
}

/// The answer to "is B better than A".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// B is better by more than the margin.
    Better,
    /// B is worse by more than the margin.
    Worse,
    /// The difference is within the margin.
    Equivalent,
    /// The interval contains a margin.
    CannotTell,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Equivalent => "equivalent",
            Self::CannotTell => "cannot tell",
        })
    }
}

/// The estimate of a ratio B / A.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The ratio itself.
    pub ratio: f64,
    /// The interval of the ratio; `None` for one block, which has no spread.
    pub interval: Option<Interval>,
    /// The number of blocks.
    pub blocks: usize,
    /// The p value of the exact sign test: the probability of such an uneven split of signs if nothing differs.
    pub sign_p: f64,
}

/// The median of all pairwise means (Hodges and Lehmann, "Estimates of location based on rank tests", 1963). Outliers
/// hardly move it, and without them it is nearly as precise as the mean. NaN for an empty slice.
pub fn hodges_lehmann(values: &[f64]) -> f64 {
    median_of(&mut pairwise_means(values))
}

/// The mean of each value with itself and all later ones.
fn pairwise_means(values: &[f64]) -> Vec<f64> {
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, a) in values.iter().enumerate() {
        means.extend(values[index..].iter().map(|b| f64::midpoint(*a, *b)));
    }
    means
}

/// The two-sided p value of the exact sign test (Conover, "Practical Nonparametric Statistics", chapter 3.4). Zeros are
/// left out. 1 without values.
pub fn sign_test(values: &[f64]) -> f64 {
    let above = values.iter().filter(|v| **v > 0.0).count() as u64;
    let below = values.iter().filter(|v| **v < 0.0).count() as u64;
    let count = above + below;
    if count == 0 {
        return 1.0;
    }
    let binomial = Binomial::new(0.5, count).expect("BUG: one half is a probability");
    (2.0 * binomial.cdf(above.min(below))).min(1.0)
}

/// The interval that inverts Wilcoxon's signed-rank test: between the pairwise means beyond which a given number of
/// others lies (Hollander and Wolfe, "Nonparametric Statistical Methods", 1999, chapter 3.3). It holds for any
/// symmetric noise, also with heavy tails. The noise of a block is symmetric, because the order of the arms is random.
/// `None` with too few values for the confidence: five and fewer at 95 %.
pub fn signed_rank(values: &[f64], confidence: f64) -> Option<Interval> {
    let beyond = ranks_beyond(values.len(), (1.0 - confidence) / 2.0)?;
    let mut means = pairwise_means(values);
    let last = means.len() - 1;
    // The means are not sorted completely: a thousand values have half a million.
    let low = *means.select_nth_unstable_by(beyond, f64::total_cmp).1;
    let high = *means.select_nth_unstable_by(last - beyond, f64::total_cmp).1;
    Some(Interval { low, high })
}

/// The largest sum of ranks that random signs reach from below with at most this probability.
fn ranks_beyond(count: usize, tail: f64) -> Option<usize> {
    let total = count * (count + 1) / 2;
    if count > BLOCKS_EXACT {
        let mean = total as f64 / 2.0;
        let deviation = (total as f64 * (2 * count + 1) as f64 / 12.0).sqrt();
        // The continuity correction for a sum of integers.
        return Some((mean + super::normal_quantile(tail) * deviation - 0.5).floor() as usize);
    }
    // The probability of each sum: every rank is included with probability one half.
    let mut likely = vec![0.0_f64; total + 1];
    likely[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..=rank * (rank + 1) / 2).rev() {
            likely[sum] = 0.5 * (likely[sum] + if sum >= rank { likely[sum - rank] } else { 0.0 });
        }
    }
    let mut below = 0.0;
    let fitting = likely.iter().take_while(|share| {
        below += **share;
        below <= tail
    });
    fitting.count().checked_sub(1)
}

/// The ratio of the arms and its interval from one estimator: Hodges-Lehmann with the signed-rank test, or the mean
/// with Student's t for too few blocks. `None` without blocks.
pub fn ratio(logs: &[f64], confidence: f64) -> Option<Ratio> {
    if logs.is_empty() {
        return None;
    }
    let (middle, interval) = match signed_rank(logs, confidence) {
        Some(interval) => (hodges_lehmann(logs), Some(interval)),
        None => (super::mean(logs), student(logs, confidence)),
    };
    Some(Ratio {
        ratio: middle.exp(),
        interval: interval.map(|interval| interval.map(f64::exp)),
        blocks: logs.len(),
        sign_p: sign_test(logs),
    })
}

/// Student's interval of a mean (Student, "The probable error of a mean", 1908).
pub fn student(values: &[f64], confidence: f64) -> Option<Interval> {
    if values.len() < 2 {
        return None;
    }
    let freedom = (values.len() - 1) as f64;
    let t = StudentsT::new(0.0, 1.0, freedom).expect("BUG: freedom is positive");
    let half = t.inverse_cdf(f64::midpoint(1.0, confidence)) * super::deviation(values)
        / (values.len() as f64).sqrt();
    let mean = super::mean(values);
    Some(Interval { low: mean - half, high: mean + half })
}

/// Welch's interval of ln(B / A) for two groups of unpaired runs (Welch, "The generalization of Student's problem",
/// 1947). `None` unless both have two runs.
pub fn welch(a: &[f64], b: &[f64], confidence: f64) -> Option<Interval> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<_>>();
    let (a, b) = (logs(a), logs(b));
    let part = |values: &[f64]| super::deviation(values).powi(2) / values.len() as f64;
    let (of_a, of_b) = (part(&a), part(&b));
    let difference = super::mean(&b) - super::mean(&a);
    if of_a + of_b <= 0.0 {
        return Some(Interval { low: difference, high: difference });
    }
    let freedom =
        (of_a + of_b).powi(2) / (of_a.powi(2) / (a.len() - 1) as f64 + of_b.powi(2) / (b.len() - 1) as f64);
    let t = StudentsT::new(0.0, 1.0, freedom).expect("BUG: freedom is positive");
    let half = t.inverse_cdf(f64::midpoint(1.0, confidence)) * (of_a + of_b).sqrt();
    Some(Interval { low: difference - half, high: difference + half })
}

/// The verdict from the interval of the ratio and a margin: an interval wholly outside is better or worse, one wholly
/// inside is equivalent (the two one-sided tests of Schuirmann, 1987), and any other gives no verdict. The margins are
/// 1 + margin and its inverse, so that swapping the arms swaps the verdict.
pub fn verdict(interval: Option<Interval>, margin: f64, better: Better) -> Verdict {
    let Some(interval) = interval else { return Verdict::CannotTell };
    let (high, low) = (1.0 + margin, 1.0 / (1.0 + margin));
    if interval.low > high {
        if better == Better::Higher { Verdict::Better } else { Verdict::Worse }
    } else if interval.high < low {
        if better == Better::Higher { Verdict::Worse } else { Verdict::Better }
    } else if interval.low >= low && interval.high <= high {
        Verdict::Equivalent
    } else {
        Verdict::CannotTell
    }
}

/// Adjusts the p values of several metrics, in their order (Holm, "A simple sequentially rejective multiple test
/// procedure", 1979).
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max((p_values[index] * (p_values.len() - rank) as f64).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    const LOGS: [f64; 10] = [0.012, -0.031, 0.044, 0.021, -0.008, 0.017, 0.052, 0.003, 0.029, -0.014];

    /// References: numpy's median of the Walsh averages, scipy.stats.binomtest, R's p.adjust.
    #[test]
    fn known_values() {
        assert!((hodges_lehmann(&LOGS) - 0.012).abs() < 1e-12);
        assert!((sign_test(&LOGS) - 0.343_75).abs() < 1e-9, "7 of 10 signs");
        assert!(
            (sign_test(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, 0.0]) - 0.021_484_375).abs()
                < 1e-9
        );
        assert_eq!(sign_test(&[]), 1.0);
        let adjusted = holm(&[0.01, 0.04, 0.03]);
        for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06]) {
            assert!((found - expected).abs() < 1e-12, "{adjusted:?}");
        }
        let interval = student(&LOGS, 0.95).unwrap();
        assert!(
            (interval.high - interval.low - 2.0 * 2.262_157_16 * 0.025_868_255_96 / 10_f64.sqrt()).abs()
                < 1e-7
        );
    }

    /// Reference: the table of Hollander and Wolfe (A.4) and, for the interval, R's wilcox.test(conf.int = TRUE).
    #[test]
    fn ranks_are_those_of_the_tables() {
        let at = |count| ranks_beyond(count, 0.025);
        assert_eq!([at(5), at(6), at(8), at(10), at(20)], [None, Some(0), Some(3), Some(8), Some(52)]);
        assert!(
            ranks_beyond(200, 0.025).unwrap().abs_diff(8_444) < 5,
            "normal: {:?}",
            ranks_beyond(200, 0.025)
        );
        let interval = signed_rank(&LOGS, 0.95).unwrap();
        assert!(interval.low < 0.0 && interval.contains(0.012) && interval.high < 0.035, "{interval:?}");
        assert_eq!(signed_rank(&[1.0; 5], 0.95), None);
    }

    /// Half of the blocks are outliers: the interval may miss the truth in at most 5 % of samples.
    #[test]
    fn intervals_of_few_and_wild_blocks_hold_what_they_promise() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut missed = 0;
        for _ in 0..2_000 {
            let blocks: Vec<f64> = (0..8)
                .map(|_| {
                    let size =
                        -(1.0 - rng.random::<f64>()).ln() * if rng.random_bool(0.5) { 0.6 } else { 0.02 };
                    if rng.random::<bool>() { size } else { -size }
                })
                .collect();
            missed += usize::from(!signed_rank(&blocks, 0.95).unwrap().contains(0.0));
        }
        assert!((40..=110).contains(&missed), "{missed} of 2,000, 78 expected (3.9 %)");
    }

    #[test]
    fn verdicts_follow_the_interval() {
        let of = |low, high, better| verdict(Some(Interval { low, high }), 0.02, better);
        assert_eq!(of(0.93, 0.97, Better::Higher), Verdict::Worse);
        assert_eq!(of(0.93, 0.97, Better::Lower), Verdict::Better);
        assert_eq!(of(1.03, 1.09, Better::Higher), Verdict::Better);
        assert_eq!(of(0.99, 1.01, Better::Higher), Verdict::Equivalent);
        assert_eq!(of(0.97, 0.99, Better::Higher), Verdict::CannotTell);
        assert_eq!(of(0.90, 1.10, Better::Higher), Verdict::CannotTell);
        assert_eq!(verdict(None, 0.02, Better::Higher), Verdict::CannotTell);
    }

    #[test]
    fn ratio_and_interval_are_of_one_estimator() {
        let few = ratio(&[0.0, 0.0, 0.0, 0.4], 0.95).unwrap();
        let middle = |interval: Interval| (interval.low * interval.high).sqrt();
        assert!((few.ratio - 0.1_f64.exp()).abs() < 1e-12, "the mean, as Student's interval has it: {few:?}");
        assert!((middle(few.interval.unwrap()) - few.ratio).abs() < 1e-12);
        let many = ratio(&LOGS, 0.95).unwrap();
        assert!((many.ratio - 0.012_f64.exp()).abs() < 1e-12 && many.interval.unwrap().contains(many.ratio));
    }

    proptest! {
        #[test]
        fn swapping_the_arms_swaps_the_verdict(low in 0.8_f64..1.2, width in 0.0_f64..0.2) {
            let forth = Interval { low, high: low + width };
            let back = Interval { low: 1.0 / forth.high, high: 1.0 / forth.low };
            let swapped = match verdict(Some(forth), 0.02, Better::Higher) {
                Verdict::Better => Verdict::Worse,
                Verdict::Worse => Verdict::Better,
                same => same,
            };
            prop_assert_eq!(verdict(Some(back), 0.02, Better::Higher), swapped);
        }

        #[test]
        fn hodges_lehmann_moves_with_its_values(values in prop::collection::vec(-1.0_f64..1.0, 1..20), by in -5.0_f64..5.0) {
            let moved: Vec<f64> = values.iter().map(|v| v + by).collect();
            prop_assert!((hodges_lehmann(&moved) - hodges_lehmann(&values) - by).abs() < 1e-9);
        }

        #[test]
        fn holm_never_makes_a_value_smaller(values in prop::collection::vec(0.0_f64..1.0, 1..9)) {
            for (adjusted, raw) in holm(&values).iter().zip(&values) {
                prop_assert!(adjusted >= raw && *adjusted <= 1.0);
            }
        }
    }
}
