//! The verdict of a comparison. Only this file turns evidence into a verdict.
//!
//! `ab` reports a difference only if three things agree: the interval of the ratio, the sign test, and the noise floor
//! of A against A. Ratio and interval come from one estimator: the signed-rank test, or Student's with too few blocks
//! for it. If one of them disagrees, the verdict is "cannot tell" and the answer names the reason.

use load::statistics::normal_quantile;
use load::statistics::paired::{Better, Ratio, Verdict, verdict};
use serde::{Deserialize, Serialize};

use super::{FigureKind, Means, Metric};

/// The significance level of each test.
const SIGNIFICANCE: f64 = 0.05;
/// The number of standard errors beyond which a mean counts as different: 99 % of normal noise lies within.
const ERRORS_MAX: f64 = 2.58;

/// The reason why an interval on one side of a margin gives no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The split of signs is not significant.
    Signs,
    /// Runs of A differ from each other as much.
    Floor,
    /// Few blocks contradict the others.
    FewBlocks,
}

/// The evidence for one metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence<'a> {
    pub(super) metric: &'a Metric,
    pub(super) ratio: &'a Ratio,
    /// The p value of the sign test after the correction for the number of metrics.
    pub(super) sign_p: f64,
    /// The difference of two runs of A: one standard deviation of the ratio's logarithm.
    pub(super) noise_floor: f64,
    pub(super) means: Option<Means>,
}

impl Evidence<'_> {
    /// The verdict, and the reason if it is not that of the interval.
    pub(super) fn verdict(&self) -> (Verdict, Option<Doubt>) {
        let of_interval = self.of_interval();
        let doubt = match of_interval {
            Verdict::CannotTell => None,
            _ if self.is_contradicted(of_interval) => Some(Doubt::FewBlocks),
            Verdict::Equivalent => None,
            Verdict::Better | Verdict::Worse if self.sign_p > SIGNIFICANCE => Some(Doubt::Signs),
            Verdict::Better | Verdict::Worse if !self.is_beyond_floor() => Some(Doubt::Floor),
            Verdict::Better | Verdict::Worse => None,
        };
        (doubt.map_or(of_interval, |_| Verdict::CannotTell), doubt)
    }

    fn of_interval(&self) -> Verdict {
        verdict(self.ratio.interval, self.metric.margin, self.metric.kind.better())
    }

    /// Whether the ratio is further from one than 19 of 20 comparisons of A against A with this number of blocks.
    fn is_beyond_floor(&self) -> bool {
        let error = self.noise_floor / (self.ratio.blocks as f64).sqrt();
        self.ratio.ratio.ln().abs() > normal_quantile(1.0 - SIGNIFICANCE / 2.0) * error
    }

    /// Whether the few blocks with a difference contradict `of_interval`, and do not just exceed it.
    fn is_contradicted(&self, of_interval: Verdict) -> bool {
        let Some(means) = few_blocks(self.metric, self.ratio, self.means) else { return false };
        let says_higher = means > self.ratio.ratio;
        match of_interval {
            Verdict::Better => says_higher != (self.metric.kind.better() == Better::Higher),
            Verdict::Worse => says_higher == (self.metric.kind.better() == Better::Higher),
            Verdict::Equivalent | Verdict::CannotTell => true,
        }
    }
}

/// The ratio of the means if few blocks hold a difference that most do not have. It does not apply to costs: a block in
/// which an arm stood still has few operations, and the cost of each is arbitrary.
pub(super) fn few_blocks(metric: &Metric, ratio: &Ratio, means: Option<Means>) -> Option<f64> {
    let means = means.filter(|_| metric.kind != FigureKind::Cost)?;
    let is_other = (means.ratio / ratio.ratio).ln().abs() > (1.0 + metric.margin).ln();
    (is_other && (means.ratio - ratio.ratio).abs() > ERRORS_MAX * means.error).then_some(means.ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::statistics::paired::{ratio, sign_test};

    fn metric(kind: FigureKind) -> Metric {
        Metric { name: "throughput".to_owned(), kind, margin: 0.02 }
    }

    fn verdict_of(
        logs: &[f64],
        metrics: f64,
        noise_floor: f64,
        means: Option<Means>,
    ) -> (Verdict, Option<Doubt>) {
        let (metric, ratio) = (metric(FigureKind::Rate), ratio(logs, 0.95).unwrap());
        let sign_p = (sign_test(logs) * metrics).min(1.0);
        Evidence { metric: &metric, ratio: &ratio, sign_p, noise_floor, means }.verdict()
    }

    #[test]
    fn a_difference_is_told_when_everything_says_so() {
        let clear = [-0.06, -0.05, -0.055, -0.045, -0.05, -0.06, -0.04, -0.05];
        assert_eq!(verdict_of(&clear, 3.0, 0.01, None), (Verdict::Worse, None));
        let better: Vec<f64> = clear.iter().map(|log| -log).collect();
        assert_eq!(verdict_of(&better, 3.0, 0.01, None), (Verdict::Better, None));
        let same = [0.001, -0.002, 0.003, 0.0, -0.001, 0.002, -0.003, 0.001];
        assert_eq!(verdict_of(&same, 3.0, 0.01, None), (Verdict::Equivalent, None));
    }

    #[test]
    fn a_sign_test_that_does_not_tell_is_not_a_difference() {
        // 11 of 13 signs: the interval lies beyond the margin, and with three metrics p is 0.067.
        let logs =
            [-0.09, -0.08, -0.07, -0.08, -0.09, -0.07, -0.08, -0.09, -0.08, -0.07, -0.085, 0.001, 0.002];
        assert!((sign_test(&logs) - 0.0225).abs() < 1e-3);
        assert_eq!(verdict_of(&logs, 1.0, 0.01, None), (Verdict::Worse, None));
        assert_eq!(verdict_of(&logs, 3.0, 0.01, None), (Verdict::CannotTell, Some(Doubt::Signs)));
    }

    #[test]
    fn a_difference_that_a_has_from_a_is_none() {
        let logs = [-0.06, -0.05, -0.055, -0.045, -0.05, -0.06, -0.04, -0.05];
        assert_eq!(verdict_of(&logs, 3.0, 0.1, None), (Verdict::CannotTell, Some(Doubt::Floor)));
    }

    #[test]
    fn few_blocks_that_say_something_else_are_heard() {
        let same = [0.001, -0.002, 0.003, 0.0, -0.001, 0.002, -0.003, 0.001];
        let means = |ratio| Some(Means { ratio, error: 0.005 });
        assert_eq!(verdict_of(&same, 1.0, 0.01, means(0.9)), (Verdict::CannotTell, Some(Doubt::FewBlocks)));
        assert_eq!(verdict_of(&same, 1.0, 0.01, means(1.01)), (Verdict::Equivalent, None));
        let worse = [-0.06, -0.05, -0.055, -0.045, -0.05, -0.06, -0.04, -0.05];
        assert_eq!(verdict_of(&worse, 1.0, 0.01, means(0.8)), (Verdict::Worse, None), "they say more of it");
        assert_eq!(verdict_of(&worse, 1.0, 0.01, means(1.05)), (Verdict::CannotTell, Some(Doubt::FewBlocks)));
    }

    #[test]
    fn five_blocks_tell_no_difference_whatever_they_are() {
        assert_eq!(verdict_of(&[-0.2; 5], 1.0, 0.01, None), (Verdict::CannotTell, Some(Doubt::Signs)));
    }
}
