//! The answer of a comparison and its sentences.

use load::statistics::paired::{Ratio, Verdict};
use serde::{Deserialize, Serialize};

use super::verdict::few_blocks;
use super::{Doubt, FigureKind, Means, Metric};

/// The result of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricComparison {
    pub metric: Metric,
    /// The ratio B / A with its 95 % interval.
    pub ratio: Ratio,
    /// The verdict, from the interval, the sign test and the noise floor together.
    pub verdict: Verdict,
    /// The reason for "cannot tell" although the interval lies on one side of a margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// p of the sign test after Holm's correction for the number of metrics.
    pub sign_p_holm: f64,
    /// The difference of two runs of A: one standard deviation of the ratio, as a share.
    pub noise_floor: f64,
    /// The means of both arms over all their time.
    pub means: Option<Means>,
    /// ln(B / A) of each block that counts, in order.
    pub blocks: Vec<f64>,
}

/// The answer of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// One entry per metric, the primary one first.
    pub metrics: Vec<MetricComparison>,
    /// The blocks that do not count, with the reason.
    pub discarded: Vec<String>,
    /// The number of blocks that the spread requires. It exceeds the number of blocks that were run if the budget ended
    /// first.
    pub blocks_wanted: usize,
    /// The number of blocks of A against B that count. For a percentile in slices, several blocks share one value.
    pub blocks_run: usize,
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for compared in &self.metrics {
            let MetricComparison { metric, ratio, verdict, noise_floor, .. } = compared;
            if ratio.blocks == 0 {
                writeln!(f, "{:<14} cannot tell: no block is valid", metric.name)?;
                continue;
            }
            let percent = |ratio: f64| (ratio - 1.0) * 100.0;
            let word = if *verdict == Verdict::CannotTell { "" } else { "B is " };
            write!(f, "{:<14} {word}{verdict}: {:+.2} %", metric.name, percent(ratio.ratio))?;
            if let Some(interval) = ratio.interval {
                write!(
                    f,
                    " (95 % interval {:+.2} to {:+.2} %)",
                    percent(interval.low),
                    percent(interval.high)
                )?;
            }
            writeln!(
                f,
                ", margin {} %, {} blocks, sign test p {:.3}; A against A differs by {:.2} %",
                metric.margin * 100.0,
                ratio.blocks,
                compared.sign_p_holm,
                noise_floor * 100.0
            )?;
        }
        self.metrics
            .iter()
            .filter_map(MetricComparison::doubted)
            .try_for_each(|note| writeln!(f, "{note}"))?;
        self.metrics
            .iter()
            .filter_map(MetricComparison::few_blocks)
            .try_for_each(|note| writeln!(f, "{note}"))?;
        self.write_advice(f)?;
        for reason in &self.discarded {
            writeln!(f, "left out       {reason}")?;
        }
        if self.blocks_wanted > self.blocks_run {
            writeln!(f, "this spread asks for {} blocks, {} were run", self.blocks_wanted, self.blocks_run)?;
        }
        Ok(())
    }
}

impl Answer {
    /// Writes advice if the primary metric has no verdict.
    fn write_advice(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some((first, others)) = self.metrics.split_first() else { return Ok(()) };
        if first.verdict != Verdict::CannotTell {
            return Ok(());
        }
        let more_blocks_help = first.doubt != Some(Doubt::FewBlocks);
        if let Some(difference) = first.smallest_detectable().filter(|_| more_blocks_help) {
            writeln!(
                f,
                "with this noise {} blocks show differences of {:.1} % and more: stop what else runs here, or allow more blocks",
                first.ratio.blocks,
                difference * 100.0
            )?;
        }
        let could_decide = |other: &&MetricComparison| {
            other.verdict != Verdict::CannotTell && other.metric.kind != FigureKind::PlannedRate
        };
        for other in others.iter().filter(could_decide) {
            let name = &other.metric.name;
            writeln!(
                f,
                "{name} was told apart from noise; to let it decide, ask for it before the next comparison: --primary {name}"
            )?;
        }
        Ok(())
    }
}

impl MetricComparison {
    /// The reason why the interval gives no verdict, as a sentence.
    fn doubted(&self) -> Option<String> {
        let name = &self.metric.name;
        let why = match self.doubt? {
            Doubt::Signs => format!("the sign test does not (p {:.3})", self.sign_p_holm),
            Doubt::Floor => format!(
                "that many blocks of A against A would differ by as much (one block by {:.2} %)",
                self.noise_floor * 100.0
            ),
            // The next line contains it.
            Doubt::FewBlocks => return None,
        };
        Some(format!("{name}: the interval alone says that B differs; {why}"))
    }

    /// A sentence if few blocks hold most of the difference.
    fn few_blocks(&self) -> Option<String> {
        let means = few_blocks(&self.metric, &self.ratio, self.means)?;
        let (over, what) = match self.metric.kind {
            FigureKind::Rate | FigureKind::PlannedRate => {
                ("over all its time", "one of them (nearly) stood still")
            }
            FigureKind::Percentile => ("in the mean of all blocks", "one of them was much slower"),
            FigureKind::Cost => return None,
        };
        Some(format!(
            "{}: {over} B differs by {:+.1} % from A, in most blocks by {:+.1} %: in few blocks {what}; look at its stalls \
             (`blocks` of ab.json)",
            self.metric.name,
            (means - 1.0) * 100.0,
            (self.ratio.ratio - 1.0) * 100.0
        ))
    }

    /// The smallest difference that this number of blocks with this noise detects nearly always, as a share. At that
    /// difference the interval lies beyond the margin even if it is off by half its width.
    pub(super) fn smallest_detectable(&self) -> Option<f64> {
        let interval = self.ratio.interval?;
        let half = (interval.high / interval.low).ln() / 2.0;
        Some(((1.0 + self.metric.margin).ln() + 2.0 * half).exp_m1())
            .filter(|difference| difference.is_finite())
    }
}
