//! Compares two settings A and B by interleaved blocks. Pure: `next` looks at the runs so far and says what to run
//! next; a runner carries it out.
//!
//! A block is one run of each arm back to back, in random order, so that a slow drift of the machine cancels. The first
//! blocks are A against A: they show how much two runs of the same thing differ, and that noise floor stands beside
//! every verdict. How many blocks follow is fixed by the spread alone and never by which arm is ahead, so looking in
//! between does not favour an answer.

mod decide;

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

/// A figure of a run that is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name in `Run::values`.
    pub name: String,
    /// Which direction is good.
    pub better: Better,
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
    /// Resamples behind each interval.
    pub resamples: usize,
    /// Seed of the order and of the intervals.
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
            resamples: crate::statistics::bootstrap::RESAMPLES,
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
    /// The verdict against the margin.
    pub verdict: Verdict,
    /// p of the sign test after Holm's correction for the number of metrics.
    pub sign_p_holm: f64,
    /// How much two runs of A differ: one standard deviation of the ratio, as a share.
    pub noise_floor: f64,
    /// ln(B / A) of each block that counts, in order.
    pub blocks: Vec<f64>,
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
        for reason in &self.discarded {
            writeln!(f, "left out       {reason}")?;
        }
        let blocks = self.metrics.first().map_or(0, |compared| compared.ratio.blocks);
        if self.blocks_wanted > blocks {
            writeln!(f, "this spread asks for {} blocks, {blocks} were run", self.blocks_wanted)?;
        }
        Ok(())
    }
}

pub use decide::next;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::paired::{P99_MARGIN, THROUGHPUT_MARGIN};
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    /// A machine whose speed wanders, on which B takes `slower` times the work of A.
    struct Machine {
        slower: f64,
        noise: f64,
        drift: f64,
        speed: f64,
        rng: Xoshiro256PlusPlus,
    }

    impl Machine {
        fn new(slower: f64, noise: f64, seed: u64) -> Self {
            Self { slower, noise, drift: 0.01, speed: 0.0, rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.rng.random::<f64>()).sum::<f64>() - 6.0
        }

        fn run(&mut self, arm: Arm) -> Run {
            self.speed += self.drift * self.normal();
            let work = if arm == Arm::B { self.slower } else { 1.0 };
            let throughput = 10_000.0 / work * (self.speed + self.noise * self.normal()).exp();
            let p99 = 5_000.0 * work * (-self.speed + 1.5 * self.noise * self.normal()).exp();
            let values = BTreeMap::from([("throughput".to_owned(), throughput), ("p99".to_owned(), p99)]);
            Run { arm, values, invalid: None }
        }
    }

    fn plan(seed: u64) -> Plan {
        let metric = |name: &str, better, margin| Metric { name: name.to_owned(), better, margin };
        let metrics = vec![
            metric("throughput", Better::Higher, THROUGHPUT_MARGIN),
            metric("p99", Better::Lower, P99_MARGIN),
        ];
        Plan { resamples: 400, ..Plan::new(metrics, seed) }
    }

    fn compare(plan: &Plan, machine: &mut Machine) -> (Answer, Vec<Run>) {
        let mut history = Vec::new();
        for _ in 0..4 * (plan.pilot_blocks + plan.blocks_max) {
            match next(plan, &history) {
                Step::Run { arm, .. } => history.push(machine.run(arm)),
                Step::Done(answer) => return (answer, history),
            }
        }
        panic!("the comparison does not end")
    }

    fn verdicts(slower: f64, noise: f64) -> Vec<Verdict> {
        (0..40)
            .map(|seed| compare(&plan(seed), &mut Machine::new(slower, noise, seed)).0.metrics[0].verdict)
            .collect()
    }

    #[test]
    fn the_same_thing_twice_is_equivalent_in_19_of_20_comparisons() {
        for noise in [0.01, 0.02] {
            let verdicts = verdicts(1.0, noise);
            let equivalent = verdicts.iter().filter(|v| **v == Verdict::Equivalent).count();
            assert!(equivalent >= 38, "{equivalent} of 40 at a noise of {noise}: {verdicts:?}");
        }
    }

    #[test]
    fn a_server_slower_by_5_percent_is_worse_and_a_faster_one_better() {
        for (slower, expected) in [(1.05, Verdict::Worse), (1.0 / 1.05, Verdict::Better)] {
            let verdicts = verdicts(slower, 0.02);
            let right = verdicts.iter().filter(|v| **v == expected).count();
            assert!(right >= 38, "{right} of 40 are {expected}: {verdicts:?}");
            let wrong =
                [Verdict::Equivalent, Verdict::Better, Verdict::Worse].into_iter().filter(|v| *v != expected);
            assert!(wrong.into_iter().all(|v| !verdicts.contains(&v)), "{verdicts:?}");
        }
    }

    #[test]
    fn too_much_noise_is_not_told_within_the_budget() {
        let plan = Plan { blocks_max: 10, ..plan(3) };
        let (answer, _) = compare(&plan, &mut Machine::new(1.0, 0.2, 3));
        assert_eq!(answer.metrics[0].verdict, Verdict::CannotTell);
        assert!(answer.blocks_wanted > 10 && answer.to_string().contains("10 were run"), "{answer}");
    }

    #[test]
    fn arms_are_interleaved_and_in_random_order() {
        let (_, history) = compare(&plan(5), &mut Machine::new(1.0, 0.01, 5));
        let arms: Vec<Arm> = history.iter().map(|run| run.arm).collect();
        assert!(arms[..6].iter().all(|arm| *arm == Arm::A), "the first three blocks are A against A");
        assert!(arms[6..].chunks(2).all(|block| block.contains(&Arm::A) && block.contains(&Arm::B)));
        let a_first = arms[6..].chunks(2).filter(|block| block[0] == Arm::A).count();
        assert!(a_first > 0 && a_first < arms[6..].len() / 2);
    }

    #[test]
    fn an_invalid_run_costs_its_block_and_is_said() {
        let plan = plan(6);
        let mut machine = Machine::new(1.0, 0.005, 6);
        let mut history: Vec<Run> = Vec::new();
        let answer = loop {
            match next(&plan, &history) {
                Step::Run { arm, .. } => {
                    let mut run = machine.run(arm);
                    if history.len() == 9 {
                        run.invalid = Some("lag p99 is 9 ms".to_owned());
                        run.values.insert("throughput".to_owned(), 1.0);
                    }
                    history.push(run);
                }
                Step::Done(answer) => break answer,
            }
        };
        assert_eq!(
            answer.discarded,
            ["block 5, arm ".to_owned() + &format!("{:?}: lag p99 is 9 ms", history[9].arm)]
        );
        assert_eq!(answer.metrics[0].verdict, Verdict::Equivalent);
        assert_eq!(history.len(), 2 * (3 + answer.metrics[0].ratio.blocks + 1));
    }

    #[test]
    fn a_target_that_never_gives_a_valid_run_ends_the_comparison() {
        let mut history: Vec<Run> = Vec::new();
        let plan = plan(7);
        while let Step::Run { arm, .. } = next(&plan, &history) {
            let (values, invalid) = (BTreeMap::new(), Some("no answer".to_owned()));
            history.push(Run { arm, values, invalid });
            assert!(history.len() < 500, "the comparison does not end");
        }
    }
}
