//! What to run next, and the answer at the end.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::{Answer, Arm, Compared, Metric, Plan, Run, Step};
use crate::statistics::paired::{Ratio, holm, ratio, sign_test, verdict};
use crate::statistics::{deviation, mean};

/// Both tails of a 95 % interval, and again as much room to one side as it needs to lie within the margin in 19 of 20
/// comparisons of equal arms: n = (3.92 sd / ln(1 + margin))^2 (Chow, Shao and Wang, "Sample size calculations in
/// clinical research", chapter 3.2, with beta 0.05 for both sides).
const ROOM: f64 = 3.92;
const CONFIDENCE: f64 = 0.95;
/// Efficiency of the Hodges-Lehmann estimate against the mean where noise is normal: 3 / pi.
const EFFICIENCY: f64 = 0.955;
/// The spread is estimated from these same blocks, and stopping as soon as it looks small favours a small estimate;
/// this many blocks are added to those that it asks for.
const BLOCKS_EXTRA: usize = 4;

/// A finished pair of runs.
struct Block<'a> {
    number: usize,
    pilot: bool,
    runs: [&'a Run; 2],
}

impl Block<'_> {
    /// ln(second / first) of a pilot, ln(B / A) else. `None` without values above zero.
    fn log(&self, metric: &Metric) -> Option<f64> {
        let value = |run: &Run| run.values.get(&metric.name).copied().filter(|v| *v > 0.0 && v.is_finite());
        let (first, second) = (value(self.runs[0])?, value(self.runs[1])?);
        let log = (second / first).ln();
        Some(if !self.pilot && self.runs[0].arm == Arm::B { -log } else { log })
    }

    fn fault(&self) -> Option<String> {
        let run = self.runs.iter().find(|run| run.invalid.is_some())?;
        Some(format!("block {}, arm {:?}: {}", self.number, run.arm, run.invalid.as_deref()?))
    }
}

/// What to do after the runs of `history`, in their order.
pub fn next(plan: &Plan, history: &[Run]) -> Step {
    let mut blocks = Vec::new();
    let mut discarded = Vec::new();
    let mut pilots = 0;
    for (index, pair) in history.chunks(2).enumerate() {
        let pilot = pilots < plan.pilot_blocks;
        let [first, second] = pair else { break };
        let block = Block { number: index + 1, pilot, runs: [first, second] };
        match block.fault() {
            Some(fault) => discarded.push(fault),
            None => {
                pilots += usize::from(pilot);
                blocks.push(block);
            }
        }
    }
    let compared = blocks.len() - pilots;
    let wanted = blocks_wanted(plan, &blocks);
    let number = history.len() / 2 + 1;
    let is_between = history.len() % 2 == 1;
    // As many blocks may fail as may be run; a target that never works must not be asked for ever.
    let hopeless = discarded.len() > plan.blocks_max;
    if !is_between && (hopeless || pilots == plan.pilot_blocks && compared >= wanted.min(plan.blocks_max)) {
        return Step::Done(answer(plan, &blocks, discarded, wanted));
    }
    let pilot = pilots < plan.pilot_blocks;
    let arm = if pilot { Arm::A } else { order(plan.seed, number)[history.len() % 2] };
    Step::Run {
        arm,
        block: number,
        pilot,
        blocks: wanted.min(plan.blocks_max) + plan.pilot_blocks + discarded.len(),
    }
}

/// The order within a block, by seed and number alone.
fn order(seed: u64, block: usize) -> [Arm; 2] {
    if of_block(seed, block).random::<bool>() { [Arm::A, Arm::B] } else { [Arm::B, Arm::A] }
}

/// Seed of both runs of a block, by the comparison's seed and the block's number (from one). Both arms get the same keys and
/// the same schedule; neighbouring blocks and comparisons with neighbouring seeds share nothing. It fits into a
/// scenario's `seed`, which is a signed integer of TOML.
pub fn block_seed(seed: u64, block: usize) -> u64 {
    let mut rng = of_block(seed, block);
    // The first value is the order's.
    let _: u64 = rng.random();
    rng.random::<u64>() & i64::MAX as u64
}

fn of_block(seed: u64, block: usize) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ block as u64)
}

/// Blocks of A against B that the spread of the primary metric asks for.
fn blocks_wanted(plan: &Plan, blocks: &[Block<'_>]) -> usize {
    let Some(primary) = plan.metrics.first() else { return plan.blocks_min };
    let spread = spread(primary, blocks);
    let wanted = ((ROOM * spread / (1.0 + primary.margin).ln()).powi(2) / EFFICIENCY).ceil();
    // Blocks beyond all reason still fit in a number.
    (wanted.min(1e6) as usize + BLOCKS_EXTRA).max(plan.blocks_min)
}

/// Standard deviation of a block's logarithm, pilots and comparisons each around their own mean: it says nothing of
/// which arm is ahead.
fn spread(metric: &Metric, blocks: &[Block<'_>]) -> f64 {
    let logs = |pilot: bool| -> Vec<f64> {
        blocks.iter().filter(|b| b.pilot == pilot).filter_map(|b| b.log(metric)).collect()
    };
    let (pilots, compared) = (logs(true), logs(false));
    // The two runs of a pilot are of one setting: its mean is zero and need not be estimated.
    let of_pilots: f64 = pilots.iter().map(|log| log * log).sum();
    let middle = if compared.is_empty() { 0.0 } else { mean(&compared) };
    let of_compared: f64 = compared.iter().map(|log| (log - middle).powi(2)).sum();
    let freedom = pilots.len() + compared.len().saturating_sub(1);
    if freedom == 0 { 0.0 } else { ((of_pilots + of_compared) / freedom as f64).sqrt() }
}

fn answer(plan: &Plan, blocks: &[Block<'_>], discarded: Vec<String>, blocks_wanted: usize) -> Answer {
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
            let squares: f64 = pilots.iter().map(|log| log * log).sum();
            let noise_floor =
                if pilots.is_empty() { deviation(&compared) } else { (squares / pilots.len() as f64).sqrt() };
            Compared {
                metric: metric.clone(),
                ratio,
                verdict: verdict(ratio.interval, metric.margin, metric.better),
                sign_p_holm,
                noise_floor: noise_floor.exp_m1(),
                blocks: compared,
            }
        })
        .collect();
    Answer { metrics, discarded, blocks_wanted }
}
