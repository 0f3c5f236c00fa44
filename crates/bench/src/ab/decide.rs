//! Chooses the next run, and gives the answer at the end.

use load::statistics::paired::{Ratio, holm, ratio, sign_test, signed_rank};
use load::statistics::{deviation, mean, median, normal_quantile};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::verdict::Evidence;
use super::{Answer, Arm, Means, Metric, MetricComparison, Plan, Run, Step};

/// Room that the interval needs within the margin, in standard errors: 1.96 for one tail of a 95 % interval, and 2.58
/// so that 99 of 100 comparisons of equal arms lie within the margin: n = ((1.96 + 2.58) sd / ln(1 + margin))^2 (Chow,
/// Shao and Wang, "Sample size calculations in clinical research", chapter 3.2, with beta 0.01 for both sides). With
/// room for 19 of 20, a third of all tests would have fewer than 38 of 40 comparisons right.
const ROOM: f64 = 4.54;
const CONFIDENCE: f64 = 0.95;
/// The efficiency of the Hodges-Lehmann estimate relative to the mean under normal noise: 3 / pi.
const EFFICIENCY: f64 = 0.955;
/// Blocks that are added to the required number. The spread is estimated from the same blocks, so stopping when it
/// looks small favours a small estimate.
const BLOCKS_EXTRA: usize = 4;
/// From this number of blocks on, the spread is taken from most of them. One slice in which the machine stood still is
/// a hundred times as far off as all others, but affects neither estimate nor interval.
const MANY: usize = 20;
/// Converts a median of distances into the standard deviation of normal noise: 1 / 0.6745.
const OF_MEDIAN: f64 = 1.4826;

/// A finished pair of runs.
struct Block<'a> {
    number: usize,
    pilot: bool,
    runs: [&'a Run; 2],
}

impl Block<'_> {
    /// ln(second / first) for a pilot, else ln(B / A). `None` without values above zero.
    fn log(&self, metric: &Metric) -> Option<f64> {
        let [before, after] = self.values(metric)?;
        Some((after / before).ln())
    }

    /// The values of the first and the second run for a pilot, else of A and B.
    fn values(&self, metric: &Metric) -> Option<[f64; 2]> {
        let value = |run: &Run| run.values.get(&metric.name).copied().filter(|v| *v > 0.0 && v.is_finite());
        let (first, second) = (value(self.runs[0])?, value(self.runs[1])?);
        Some(if !self.pilot && self.runs[0].arm == Arm::B { [second, first] } else { [first, second] })
    }

    /// The reason why the block does not count.
    fn fault(&self) -> Option<Discarded> {
        let run = self.runs.iter().find(|run| run.invalid.is_some())?;
        Some(Discarded { blocks: (self.number, self.number), arm: run.arm, reason: run.invalid.clone()? })
    }
}

/// The means of both arms over all their time. They contain a difference that few blocks hold, such as those in which
/// one arm stood still; the median ratio does not.
fn means(metric: &Metric, blocks: &[Block<'_>]) -> Option<Means> {
    let pairs: Vec<[f64; 2]> = blocks.iter().filter(|b| !b.pilot).filter_map(|b| b.values(metric)).collect();
    let of_a = mean(&pairs.iter().map(|[a, _]| *a).collect::<Vec<f64>>());
    let changes: Vec<f64> = pairs.iter().map(|[a, b]| (b - a) / of_a).collect();
    (changes.len() >= 2).then(|| Means {
        ratio: 1.0 + mean(&changes),
        error: deviation(&changes) / (changes.len() as f64).sqrt(),
    })
}

/// Adjacent blocks that do not count for the same reason.
struct Discarded {
    /// The first and the last block.
    blocks: (usize, usize),
    arm: Arm,
    reason: String,
}

impl Discarded {
    fn goes_on_in(&self, next: &Self) -> bool {
        self.blocks.1 + 1 == next.blocks.0 && (self.arm, &self.reason) == (next.arm, &next.reason)
    }

    fn count(&self) -> usize {
        self.blocks.1 - self.blocks.0 + 1
    }

    fn sentence(&self) -> String {
        let blocks = match self.blocks {
            (first, last) if first == last => format!("block {first}"),
            (first, last) => format!("blocks {first} to {last}"),
        };
        format!("{blocks}, arm {:?}: {}", self.arm, self.reason)
    }
}

/// The next step after the runs of `history`, in their order.
pub fn next(plan: &Plan, history: &[Run]) -> Step {
    let mut blocks = Vec::new();
    let mut discarded: Vec<Discarded> = Vec::new();
    let mut pilots = 0;
    for (index, pair) in history.chunks(2).enumerate() {
        let pilot = pilots < plan.pilot_blocks;
        let [first, second] = pair else { break };
        let block = Block { number: index + 1, pilot, runs: [first, second] };
        match block.fault() {
            Some(fault) => match discarded.last_mut() {
                Some(last) if last.goes_on_in(&fault) => last.blocks.1 += 1,
                _ => discarded.push(fault),
            },
            None => {
                pilots += usize::from(pilot);
                blocks.push(block);
            }
        }
    }
    let left_out: usize = discarded.iter().map(Discarded::count).sum();
    let compared = blocks.len() - pilots;
    let wanted = blocks_wanted(plan, &blocks);
    let number = history.len() / 2 + 1;
    let is_between = history.len() % 2 == 1;
    // At most as many blocks may fail as may be run, so that a comparison with a broken target ends.
    let hopeless = left_out > plan.blocks_max;
    if !is_between && (hopeless || pilots == plan.pilot_blocks && compared >= wanted.min(plan.blocks_max)) {
        return Step::Done(answer(plan, &blocks, &discarded, wanted));
    }
    let pilot = pilots < plan.pilot_blocks;
    let arm = if pilot { Arm::A } else { order(plan.seed, number)[history.len() % 2] };
    Step::Run {
        arm,
        block: number,
        pilot,
        blocks: wanted.min(plan.blocks_max) + plan.pilot_blocks + left_out,
    }
}

/// The order within a block, a function of seed and number.
pub(crate) fn order(seed: u64, block: usize) -> [Arm; 2] {
    if of_block(seed, block).random::<bool>() { [Arm::A, Arm::B] } else { [Arm::B, Arm::A] }
}

/// The seed of both runs of a block, a function of the comparison's seed and the block's number (from one). Both arms
/// get the same keys and the same schedule. Adjacent blocks, and comparisons with adjacent seeds, share nothing. The
/// seed fits into `seed` of a scenario, a signed integer of TOML.
pub fn block_seed(seed: u64, block: usize) -> u64 {
    let mut rng = of_block(seed, block);
    // The first value decides the order.
    let _: u64 = rng.random();
    rng.random::<u64>() & i64::MAX as u64
}

fn of_block(seed: u64, block: usize) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ block as u64)
}

/// The number of blocks of A against B that the spread of the primary metric requires.
fn blocks_wanted(plan: &Plan, blocks: &[Block<'_>]) -> usize {
    let Some(primary) = plan.metrics.first() else { return plan.blocks_min };
    let spread = spread(primary, blocks);
    // Several pairs of slices share one value of a percentile.
    let values = blocks.iter().filter(|block| block.log(primary).is_some()).count();
    let wanted = ((ROOM * spread / (1.0 + primary.margin).ln()).powi(2) / EFFICIENCY).ceil();
    // Absurdly large values must still fit into a number.
    let wanted = wanted.min(1e6) as usize + BLOCKS_EXTRA;
    (wanted * blocks.len()).div_ceil(values.max(1)).max(plan.blocks_min)
}

/// The standard deviation of a block's logarithm. Pilots and comparisons are each taken around their own mean, so the
/// spread does not depend on which arm is ahead.
fn spread(metric: &Metric, blocks: &[Block<'_>]) -> f64 {
    let logs = |pilot: bool| -> Vec<f64> {
        blocks.iter().filter(|b| b.pilot == pilot).filter_map(|b| b.log(metric)).collect()
    };
    let (pilots, compared) = (logs(true), logs(false));
    if pilots.len() + compared.len() >= MANY {
        let middle = median(&compared);
        let centred: Vec<f64> = compared.iter().map(|log| log - middle).chain(pilots).collect();
        let Some(interval) = signed_rank(&centred, CONFIDENCE) else { return 0.0 };
        // The deviation of normal noise with this interval.
        let half = (interval.high - interval.low) / 2.0;
        return half / normal_quantile(f64::midpoint(1.0, CONFIDENCE))
            * (centred.len() as f64 * EFFICIENCY).sqrt();
    }
    // The two runs of a pilot have the same setting, so their mean is zero and need not be estimated.
    let of_pilots: f64 = pilots.iter().map(|log| log * log).sum();
    let middle = if compared.is_empty() { 0.0 } else { mean(&compared) };
    let of_compared: f64 = compared.iter().map(|log| (log - middle).powi(2)).sum();
    let freedom = pilots.len() + compared.len().saturating_sub(1);
    if freedom == 0 { 0.0 } else { ((of_pilots + of_compared) / freedom as f64).sqrt() }
}

/// The standard deviation around zero of the blocks of A against A.
fn noise_floor(pilots: &[f64]) -> f64 {
    if pilots.len() >= MANY {
        return OF_MEDIAN * median(&pilots.iter().map(|log| log.abs()).collect::<Vec<f64>>());
    }
    let squares: f64 = pilots.iter().map(|log| log * log).sum();
    (squares / pilots.len() as f64).sqrt()
}

fn answer(plan: &Plan, blocks: &[Block<'_>], discarded: &[Discarded], blocks_wanted: usize) -> Answer {
    let logs = |metric: &Metric, pilot: bool| -> Vec<f64> {
        blocks.iter().filter(|b| b.pilot == pilot).filter_map(|b| b.log(metric)).collect()
    };
    let signs: Vec<f64> = plan.metrics.iter().map(|metric| sign_test(&logs(metric, false))).collect();
    let metrics = plan
        .metrics
        .iter()
        .zip(holm(&signs))
        .map(|(metric, sign_p_holm)| {
            let compared = logs(metric, false);
            let nothing = Ratio { ratio: f64::NAN, interval: None, blocks: 0, sign_p: 1.0 };
            let ratio = ratio(&compared, CONFIDENCE).unwrap_or(nothing);
            let pilots = logs(metric, true);
            let noise_floor = if pilots.is_empty() { deviation(&compared) } else { noise_floor(&pilots) };
            let means = means(metric, blocks);
            let evidence = Evidence { metric, ratio: &ratio, sign_p: sign_p_holm, noise_floor, means };
            let (verdict, doubt) = evidence.verdict();
            let noise_floor = noise_floor.exp_m1();
            MetricComparison {
                metric: metric.clone(),
                ratio,
                verdict,
                doubt,
                sign_p_holm,
                noise_floor,
                means,
                blocks: compared,
            }
        })
        .collect();
    Answer {
        metrics,
        discarded: discarded.iter().map(Discarded::sentence).collect(),
        blocks_wanted,
        blocks_run: blocks.iter().filter(|block| !block.pilot).count(),
    }
}
