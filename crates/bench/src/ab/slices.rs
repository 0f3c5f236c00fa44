//! Comparisons in slices: their number and their figures. A block is a pair of slices, one of each arm.

use std::collections::BTreeMap;
use std::time::Duration;

use load::recorder::{Class, Counts, Latency, Recorder};

use super::{Arm, Metric, Plan, Run};

/// The number of pairs of slices between two looks at the results.
pub(crate) const PAIRS: usize = 10;
/// The number of samples of each side behind one value of p99, if a group has them: two samples lie above the value.
/// Few pairs per value are better than many, because one slice in which the machine stood still spoils its value, and
/// adjacent slices resemble each other.
const P99_SAMPLES: u64 = 200;
/// The share of a slice before its measured part. All connections start at once then, and the processor caches hold
/// data of the other side.
const RAMP: f64 = 0.1;
/// The measured time of each arm in A against A, and the least and most in A against B, seconds. 5 s are 250 pairs of
/// 20 ms. With the noise of a quiet machine, 3 to 5 % of a pair, the interval is a third of the margin.
const PILOT_S: f64 = 1.0;
const COMPARED_MIN_S: f64 = 5.0;
const COMPARED_MAX_S: f64 = 60.0;
/// The same as a number of groups, for long slices.
const PILOT_GROUPS: usize = 1;
const COMPARED_MIN_GROUPS: usize = 3;
const COMPARED_MAX_GROUPS: usize = 6;
/// The largest share of the operations of a load on a schedule that may be unanswered at the end of slices. The limit
/// applies after some slices, because the machine may have stood still in one.
const BEHIND_MAX: f64 = 0.05;
const BEHIND_SLICES_MIN: u64 = 50;
/// The number of operations counted for a slice without an answer, so that it has a logarithm and is the slowest one.
const NO_ANSWER: f64 = 0.5;

impl Plan {
    /// The default plan for slices of this length.
    pub(crate) fn of_slices(metrics: Vec<Metric>, seed: u64, slice: Duration) -> Self {
        let pairs = |seconds: f64, groups: usize| {
            PAIRS * groups.max((seconds / slice.as_secs_f64() / PAIRS as f64).ceil() as usize)
        };
        Self {
            metrics,
            pilot_blocks: pairs(PILOT_S, PILOT_GROUPS),
            blocks_min: pairs(COMPARED_MIN_S, COMPARED_MIN_GROUPS),
            blocks_max: pairs(COMPARED_MAX_S, COMPARED_MAX_GROUPS),
            seed,
        }
    }
}

/// The operations of a load on a schedule that were unanswered at the end of their slices, for both sides.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    slices: [u64; 2],
    planned: [u64; 2],
    answered: [u64; 2],
}

impl Backlog {
    pub(crate) fn add(&mut self, arm: Arm, counts: &Counts) {
        let side = arm as usize;
        self.slices[side] += 1;
        self.planned[side] += counts.measured_planned;
        self.answered[side] += counts.completed_within_window + counts.errors_total();
    }

    /// The side that leaves too many operations unanswered, and their share. The schedule does not wait for them, so
    /// the queue of this side would never reach its real length.
    pub(crate) fn exceeded(&self) -> Option<(Arm, f64)> {
        [Arm::A, Arm::B].into_iter().find_map(|arm| {
            let side = arm as usize;
            let late = self.planned[side].saturating_sub(self.answered[side]);
            let share = late as f64 / self.planned[side].max(1) as f64;
            (self.slices[side] >= BEHIND_SLICES_MIN && share > BEHIND_MAX).then_some((arm, share))
        })
    }
}

/// The length of the part of a slice that is not measured.
pub(crate) fn ramp(slice: Duration) -> Duration {
    slice.mul_f64(RAMP)
}

/// The slices of a group.
#[derive(Debug, Default)]
pub(crate) struct SliceGroup {
    runs: Vec<Run>,
    /// For each run, the index of its sum.
    sides: Vec<usize>,
    /// The response times of each run.
    responses: Vec<Latency>,
    sums: [Class; 2],
}

impl SliceGroup {
    /// Adds a slice of an arm. `side` is the index of its sum: the position in the pair for A against A, else the arm.
    pub(crate) fn add(
        &mut self,
        arm: Arm,
        side: usize,
        recorder: &Recorder,
        measured: Duration,
        target_cpu: Option<Duration>,
    ) {
        let total = recorder.total();
        let counts = &total.counts;
        // Connections with a pause have no operation for most of the time.
        let within = (counts.completed_within_window as f64).max(NO_ANSWER) / measured.as_secs_f64();
        let rate = recorder.busy_rate_per_s().unwrap_or(within);
        let mut values = BTreeMap::from([("throughput".to_owned(), rate)]);
        let cpu = target_cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / counts.completed.max(1) as f64);
        values.extend(cpu.filter(|cpu| *cpu > 0.0).map(|cpu| ("cpu".to_owned(), cpu)));
        self.sums[side].counts.merge(counts);
        self.sums[side].clocks.merge(&total.clocks);
        self.responses.push(total.clocks.response);
        self.runs.push(Run { arm, values, invalid: None });
        self.sides.push(side);
    }

    /// A side that began no operation in any slice. In a closed loop it has no connection.
    pub(crate) fn idle_side(&self) -> Option<usize> {
        let is_idle =
            |sum: &Class| sum.counts.planned == 0 && sum.counts.sent == 0 && sum.counts.completed == 0;
        self.sums.iter().position(is_idle)
    }

    /// The slices as runs, with percentiles. A side with a fault is invalid in all of them.
    pub(crate) fn finish(mut self, fault: impl Fn(usize, &Class) -> Option<String>) -> Vec<Run> {
        self.add_percentiles();
        let faults = [fault(0, &self.sums[0]), fault(1, &self.sums[1])];
        for (run, side) in self.runs.iter_mut().zip(&self.sides) {
            run.invalid.clone_from(&faults[*side]);
        }
        self.runs
    }

    /// Gives the last of several pairs the percentile of all of them.
    fn add_percentiles(&mut self) {
        let slices = 2 * self.pairs_per_percentile();
        for first in (0..self.runs.len()).step_by(slices) {
            let until = (first + slices).min(self.runs.len());
            let mut sums = [Latency::new(), Latency::new()];
            for index in first..until {
                sums[self.sides[index]].merge(&self.responses[index]);
            }
            for index in until.saturating_sub(2).max(first)..until {
                let response = &sums[self.sides[index]];
                if !response.is_empty() {
                    self.runs[index].values.insert("p99".to_owned(), response.quantile_us(0.99) as f64);
                }
            }
        }
    }

    /// The smallest number of pairs that has enough samples and divides the group evenly.
    fn pairs_per_percentile(&self) -> usize {
        let pairs = self.runs.len().div_ceil(2).max(1);
        let samples = self.sums.iter().map(|sum| sum.clocks.response.len()).min().unwrap_or(0);
        (1..pairs)
            .filter(|few| pairs.is_multiple_of(*few))
            .find(|few| samples * *few as u64 >= P99_SAMPLES * pairs as u64)
            .unwrap_or(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::recorder::{Operation, Window};

    fn slice(operations: u64, took_us: u64) -> Recorder {
        let mut recorder = Recorder::new(Window { from_ns: 0, until_ns: 1_000_000_000 }, 1);
        for n in 0..operations {
            let operation = Operation { class: 0, intended_ns: n, sent_ns: n };
            recorder.sent(&operation, 1);
            recorder.completed(&operation, n + took_us * 1_000, 1);
        }
        recorder.take_second(0);
        recorder
    }

    #[test]
    fn pairs_have_rate_and_cpu_and_a_group_has_one_percentile() {
        let mut group = SliceGroup::default();
        let (tenth, cpu) = (Duration::from_millis(100), Some(Duration::from_millis(1)));
        for (arm, took_us) in [(Arm::A, 100), (Arm::B, 200), (Arm::B, 400), (Arm::A, 100)] {
            group.add(arm, arm as usize, &slice(100, took_us), tenth, cpu);
        }
        assert_eq!(group.idle_side(), None);
        let runs = group.finish(|_, _| None);
        assert_eq!(runs.iter().map(|run| run.arm).collect::<Vec<_>>(), [Arm::A, Arm::B, Arm::B, Arm::A]);
        assert!(runs.iter().all(|run| run.values["throughput"] == 1_000.0 && run.values["cpu"] == 10.0));
        let p99: Vec<Option<f64>> = runs.iter().map(|run| run.values.get("p99").copied()).collect();
        assert_eq!(p99, [None, None, Some(400.0), Some(100.0)], "B's is that of both its slices");
    }

    #[test]
    fn as_few_pairs_as_have_the_samples_share_a_percentile() {
        let numbered = |operations: u64| {
            let mut group = SliceGroup::default();
            for pair in 1..=10 {
                group.add(Arm::A, 0, &slice(operations, pair * 100), Duration::from_millis(20), None);
                group.add(Arm::B, 1, &slice(operations, pair * 200), Duration::from_millis(20), None);
            }
            let runs = group.finish(|_, _| None);
            let value = |index: usize| runs[index].values.get("p99").map(|us| (us / 100.0).round());
            [0, 1].map(|side| (0..10).map(|pair| value(2 * pair + side)).collect::<Vec<_>>())
        };
        let [a, b] = numbered(200);
        assert_eq!(a, (1..=10).map(|pair| Some(f64::from(pair))).collect::<Vec<_>>());
        assert_eq!(b, (1..=10).map(|pair| Some(f64::from(2 * pair))).collect::<Vec<_>>());
        let places = |values: &[Option<f64>]| -> Vec<(usize, f64)> {
            values.iter().enumerate().filter_map(|(pair, value)| Some((pair + 1, (*value)?))).collect()
        };
        assert_eq!(places(&numbered(199)[0]), [2, 4, 6, 8, 10].map(|pair| (pair, pair as f64)));
        assert_eq!(places(&numbered(99)[1]), [(5, 10.0), (10, 20.0)], "five pairs, although three would do");
        assert_eq!(places(&numbered(1)[0]), [(10, 10.0)]);
    }

    #[test]
    fn a_slice_without_an_answer_is_slow_and_not_left_out() {
        let mut group = SliceGroup::default();
        group.add(Arm::A, 0, &slice(0, 0), Duration::from_millis(50), None);
        group.add(Arm::B, 1, &slice(1, 1), Duration::from_millis(50), None);
        assert_eq!(group.idle_side(), Some(0));
        let runs = group.finish(|side, _| (side == 1).then(|| "slow".to_owned()));
        assert_eq!((runs[0].values["throughput"], runs[1].values["throughput"]), (10.0, 20.0));
        assert_eq!((&runs[0].invalid, &runs[1].invalid), (&None, &Some("slow".to_owned())));
        assert!(!runs[0].values.contains_key("p99") && !runs[1].values.contains_key("cpu"));
    }

    #[test]
    fn a_side_is_behind_when_its_slices_are_and_not_when_one_is() {
        let counts = |measured_planned, completed_within_window| Counts {
            measured_planned,
            completed_within_window,
            ..Counts::default()
        };
        let mut backlog = Backlog::default();
        backlog.add(Arm::A, &counts(100, 0));
        (0..49).for_each(|_| backlog.add(Arm::A, &counts(100, 99)));
        assert_eq!(backlog.exceeded(), None, "3 % in all");
        let refused = Counts { errors: BTreeMap::from([("no".to_owned(), 10)]), ..counts(100, 90) };
        (0..49).for_each(|_| backlog.add(Arm::B, &refused));
        assert_eq!(backlog.exceeded(), None, "refusals are answers");
        backlog.add(Arm::B, &counts(5_000, 4_000));
        let (arm, share) = backlog.exceeded().unwrap();
        assert_eq!((arm, (share * 100.0).round()), (Arm::B, 10.0));
    }

    #[test]
    fn short_slices_are_many_and_long_ones_few() {
        let blocks = |ms| {
            let plan = Plan::of_slices(Vec::new(), 1, Duration::from_millis(ms));
            (plan.pilot_blocks, plan.blocks_min, plan.blocks_max)
        };
        assert_eq!(
            (blocks(20), blocks(50), blocks(500)),
            ((50, 250, 3_000), (20, 100, 1_200), (10, 30, 120))
        );
        assert_eq!(blocks(10_000), (10, 30, 60));
    }
}
