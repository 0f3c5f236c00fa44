//! Compares two settings A and B by interleaved blocks. Pure: `next` looks at the runs so far and says what to run
//! next; a runner carries it out.
//!
//! A block is one run of each arm back to back, or one short slice of each while both stay connected, in random order, so
//! that a slow drift of the machine cancels. The first blocks are A against A: they show how much two of the same thing
//! differ, and that noise floor stands beside every verdict. How many blocks follow is fixed by the spread alone and never
//! by which arm is ahead, so looking in between does not favour an answer.

mod decide;
pub(crate) mod slices;
mod told;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::statistics::paired::{Better, Ratio, Verdict};

/// One of the two settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arm {
    /// The setting compared with.
    A,
    /// The setting in question.
    B,
}

/// What a figure says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Operations per second, as fast as answers come.
    Rate,
    /// Operations per second of a load on a schedule, which says how many.
    PlannedRate,
    /// A percentile of time. It tells of what is rare, so what few blocks hold counts.
    Percentile,
    /// What an operation costs.
    Cost,
}

impl Kind {
    /// Which direction is good.
    pub fn better(self) -> Better {
        match self {
            Self::Rate | Self::PlannedRate => Better::Higher,
            Self::Percentile | Self::Cost => Better::Lower,
        }
    }
}

/// A figure of a run that is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name in `Run::values`.
    pub name: String,
    /// What it says.
    pub kind: Kind,
    /// Change that counts as none, as a share.
    pub margin: f64,
}

/// How to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is compared; the first decides how many blocks are run and is the answer.
    pub metrics: Vec<Metric>,
    /// Blocks of A against A at the begin.
    pub pilot_blocks: usize,
    /// Fewest blocks of A against B.
    pub blocks_min: usize,
    /// Most blocks of A against B; what is not told by then is not told.
    pub blocks_max: usize,
    /// Seed of the order.
    pub seed: u64,
}

impl Plan {
    /// The usual comparison of some metrics, the first of which is the answer.
    pub fn new(metrics: Vec<Metric>, seed: u64) -> Self {
        Self {
            metrics,
            pilot_blocks: 3,
            blocks_min: crate::statistics::paired::BLOCKS_MIN,
            blocks_max: 60,
            seed,
        }
    }
}

/// One run, in the order they were run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Which setting.
    pub arm: Arm,
    /// The metrics' values; all above zero.
    pub values: BTreeMap<String, f64>,
    /// Why the run is not valid, if it is not. Its block is left out and run again.
    pub invalid: Option<String>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run the load with this setting.
    Run {
        /// Which setting.
        arm: Arm,
        /// Number of the block, from one.
        block: usize,
        /// Whether it is one of the first blocks, A against A.
        pilot: bool,
        /// Blocks that are thought to be needed in all, as far as the spread is known.
        blocks: usize,
    },
    /// The comparison is over.
    Done(Answer),
}

/// What became of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What was compared.
    pub metric: Metric,
    /// The ratio B / A with its 95 % interval.
    pub ratio: Ratio,
    /// The verdict: of interval, sign test and noise floor together.
    pub verdict: Verdict,
    /// Why it is "cannot tell" although the interval lies on one side of a margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// p of the sign test after Holm's correction for the number of metrics.
    pub sign_p_holm: f64,
    /// How much two runs of A differ: one standard deviation of the ratio, as a share.
    pub noise_floor: f64,
    /// Both arms over all their time.
    pub means: Option<Means>,
    /// ln(B / A) of each block that counts, in order.
    pub blocks: Vec<f64>,
}

/// The ratio of two arithmetic means over all blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Means {
    /// B / A.
    pub ratio: f64,
    /// Its standard error.
    pub error: f64,
}

/// The end of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// One entry per metric, the primary one first.
    pub metrics: Vec<Compared>,
    /// Blocks left out, with the reason.
    pub discarded: Vec<String>,
    /// Blocks that the spread asks for; more than were run when the budget ended first.
    pub blocks_wanted: usize,
    /// Blocks of A against B that count. Of a percentile of slices several share one value.
    pub blocks_run: usize,
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for compared in &self.metrics {
            let Compared { metric, ratio, verdict, noise_floor, .. } = compared;
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
        self.metrics.iter().filter_map(Compared::doubted).try_for_each(|note| writeln!(f, "{note}"))?;
        self.metrics.iter().filter_map(Compared::few_blocks).try_for_each(|note| writeln!(f, "{note}"))?;
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
    /// What to do when the deciding metric told nothing.
    fn write_advice(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some((first, others)) = self.metrics.split_first() else { return Ok(()) };
        if first.verdict != Verdict::CannotTell {
            return Ok(());
        }
        let more_blocks_help = first.doubt != Some(Doubt::FewBlocks);
        if let Some(told) = first.smallest_told().filter(|_| more_blocks_help) {
            writeln!(
                f,
                "with so much noise {} blocks tell differences of {:.1} % and more: stop what else runs here, or allow more blocks",
                first.ratio.blocks,
                told * 100.0
            )?;
        }
        let could_decide = |other: &&Compared| {
            other.verdict != Verdict::CannotTell && other.metric.kind != Kind::PlannedRate
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

impl Compared {
    /// What keeps the interval from being a verdict.
    fn doubted(&self) -> Option<String> {
        let name = &self.metric.name;
        let why = match self.doubt? {
            Doubt::Signs => format!("the sign test does not (p {:.3})", self.sign_p_holm),
            Doubt::Floor => format!(
                "so many blocks of A against A would differ by as much (one block by {:.2} %)",
                self.noise_floor * 100.0
            ),
            // The next line says it.
            Doubt::FewBlocks => return None,
        };
        Some(format!("{name}: the interval alone says that B differs; {why}"))
    }

    /// What to say of it.
    fn few_blocks(&self) -> Option<String> {
        let means = told::few_blocks(&self.metric, &self.ratio, self.means)?;
        let (over, what) = match self.metric.kind {
            Kind::Rate | Kind::PlannedRate => ("over all its time", "one of them (nearly) stood still"),
            Kind::Percentile => ("in the mean of all blocks", "one of them was much slower"),
            Kind::Cost => return None,
        };
        Some(format!(
            "{}: {over} B differs by {:+.1} % from A, in most blocks by {:+.1} %: in few blocks {what}; look at its stalls \
             (`blocks` of ab.json)",
            self.metric.name,
            (means - 1.0) * 100.0,
            (self.ratio.ratio - 1.0) * 100.0
        ))
    }

    /// The smallest difference that so many blocks with this noise would nearly always tell, as a share: then the
    /// interval, as wide as it is, lies beyond the margin even when it is half its width off.
    fn smallest_told(&self) -> Option<f64> {
        let interval = self.ratio.interval?;
        let half = (interval.high / interval.low).ln() / 2.0;
        Some(((1.0 + self.metric.margin).ln() + 2.0 * half).exp_m1()).filter(|told| told.is_finite())
    }
}

pub(crate) use decide::order;
pub use decide::{block_seed, next};
pub use told::Doubt;

#[cfg(test)]
mod tests;
