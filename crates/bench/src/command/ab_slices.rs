//! `tacho bench ab` in slices: both sides stay connected and alternate.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use load::engine::Slice;
use load::progress::Progress;
use load::recorder::Class;
use load::scenario::{Phase, Scenario};
use load::{Error, Result};

use super::output::write_line;
use super::series::RunSeries;
use crate::ab::slices::{Backlog, PAIRS, SliceGroup, ramp};
use crate::ab::{Answer, Arm, Metric, Plan, Run, Step, block_seed, next, order};
use crate::limits::SLICE_MS;
use crate::runner::interleaver::Interleaver;
use crate::runner::slicing::{Slicing, failed_gate, slicing};

/// The two settings, and the length of their slices.
pub(super) struct SlicedComparison<'a> {
    sides: [&'a Scenario; 2],
    phase: &'a str,
    slice: Duration,
    seed: u64,
    /// Whether the load is on a schedule.
    pub(super) is_open: bool,
}

/// How both sides are sliced; `None` for whole runs. The error states why the requested slices are impossible.
pub(super) fn sliced<'a>(
    sides: [&'a Scenario; 2],
    series: &'a RunSeries<'_>,
    asked_ms: Option<u32>,
) -> Result<Option<SlicedComparison<'a>>> {
    let slicing_of = |side| slicing(side, phase_of(side, &series.phase)?).map_err(Error::Options);
    let suits = slicing_of(sides[0])?.of_both(slicing_of(sides[1])?);
    let ms = match (asked_ms, suits) {
        (Some(0), _) | (None, Slicing::OnRequest | Slicing::Never) => return Ok(None),
        (_, Slicing::ByDefault(_) | Slicing::OnRequest) if series.is_shared() => {
            return Err(Error::Options(
                "one process has both sides of a comparison in slices: with --workers or --worker-command compare whole runs, \
                 --slice-ms 0"
                    .to_owned(),
            ));
        }
        (Some(_), Slicing::Never) => {
            return Err(Error::Options(format!(
                "--slice-ms: phase `{}` is compared by whole runs. Slices are for loads at one rate and closed loops, without an end \
                 of their own (drivers redis, http, tcp, mqtt, sql, kernels of host and one question of reads): --set \
                 phase.{}.arrival=closed",
                series.phase, series.phase
            )));
        }
        (Some(ms), _) if ms < pause_ms(sides, &series.phase)? => {
            return Err(Error::Options(format!(
                "--slice-ms {ms}: connections pause for {} ms, and each has its operation in every slice: use at least that",
                pause_ms(sides, &series.phase)?
            )));
        }
        (Some(ms), _) if !SLICE_MS.contains(&ms) => {
            return Err(Error::Options(format!(
                "--slice-ms {ms}: a slice is {} to {} ms, or 0 for whole runs",
                SLICE_MS.start(),
                SLICE_MS.end()
            )));
        }
        (Some(ms), _) | (None, Slicing::ByDefault(ms)) => ms,
    };
    let slice = Duration::from_millis(ms.into());
    Ok(Some(SlicedComparison {
        sides,
        phase: &series.phase,
        slice,
        seed: series.seed,
        is_open: suits == Slicing::OnRequest,
    }))
}

/// The longest pause of a connection of either side.
fn pause_ms(sides: [&Scenario; 2], phase: &str) -> Result<u32> {
    let [a, b] = [phase_of(sides[0], phase)?.pause_ms(), phase_of(sides[1], phase)?.pause_ms()];
    Ok(a.max(b))
}

fn phase_of<'s>(scenario: &'s Scenario, name: &str) -> Result<&'s Phase> {
    let known = scenario.phases.iter().find(|phase| phase.name == name);
    known.ok_or_else(|| Error::Options(format!("there is no phase `{name}` in {}", scenario.head.name)))
}

impl SlicedComparison<'_> {
    /// Compares; `metrics_of` chooses the metrics among the known figures, the primary one first.
    pub(super) fn compare(
        &self,
        interleaver: &Interleaver,
        blocks_max: Option<usize>,
        metrics_of: impl Fn(&BTreeMap<String, f64>) -> Vec<Metric>,
        out: &mut dyn Write,
    ) -> Result<(Answer, Vec<Run>)> {
        self.warm_up(interleaver)?;
        // The figures are known after the first group.
        let mut backlog = Backlog::default();
        let mut history = self.group(interleaver, 1, true, &mut backlog)?;
        let known = history.last().map(|run| run.values.clone()).unwrap_or_default();
        let plan = Plan::of_slices(metrics_of(&known), self.seed, self.slice);
        let plan = Plan { blocks_max: blocks_max.unwrap_or(plan.blocks_max), ..plan };
        loop {
            let (block, pilot, blocks) = match next(&plan, &history) {
                Step::Done(answer) => return Ok((answer, history)),
                Step::Run { block, pilot, blocks, .. } => (block, pilot, blocks),
            };
            let group = self.group(interleaver, block, pilot, &mut backlog)?;
            write_line(out, &line(block, blocks, pilot, &group))?;
            history.extend(group);
        }
    }

    fn warm_up(&self, interleaver: &Interleaver) -> Result<()> {
        let progress = Progress::terminal_only();
        for (arm, scenario) in [Arm::A, Arm::B].into_iter().zip(self.sides) {
            let warmup = phase_of(scenario, self.phase)?.warmup;
            if !warmup.is_zero() {
                progress.update(|| format!("warm-up of {arm:?}, {} s", warmup.as_secs_f64()));
                interleaver.run_slice(arm, Slice { warmup, duration: Duration::ZERO, seed: self.seed })?;
            }
        }
        Ok(())
    }

    /// Runs pairs of slices from block `first` on. It updates the progress while nothing is in flight.
    fn group(
        &self,
        interleaver: &Interleaver,
        first: usize,
        pilot: bool,
        backlog: &mut Backlog,
    ) -> Result<Vec<Run>> {
        let (mut group, progress) = (SliceGroup::default(), Progress::terminal_only());
        for block in first..first + PAIRS {
            let what = if pilot { "A against A" } else { "A against B" };
            progress.update(|| format!("pair {block}, {what}"));
            let arms = if pilot { [Arm::A; 2] } else { order(self.seed, block) };
            for (place, arm) in arms.into_iter().enumerate() {
                let seed = block_seed(self.seed, block);
                let slice = interleaver
                    .run_slice(arm, Slice { warmup: ramp(self.slice), duration: self.slice, seed })?;
                let side = if pilot { place } else { arm as usize };
                let outcome = &slice.outcome;
                group.add(arm, side, &outcome.recorder, outcome.measured, slice.target_cpu);
                if self.is_open {
                    backlog.add(arm, &outcome.recorder.total().counts);
                }
            }
        }
        if let Some((arm, share)) = backlog.exceeded() {
            return Err(self.backlog_error(arm, share));
        }
        // Otherwise the slices of a dead server would be discarded one by one.
        if let Some(side) = group.idle_side() {
            let arm = if pilot || side == 0 { Arm::A } else { Arm::B };
            return Err(Error::Verdict(format!("side {arm:?} has no connection left")));
        }
        let failed_gate_of = |side: usize, total: &Class| {
            let scenario = self.sides[if pilot { Arm::A as usize } else { side }];
            failed_gate(total, scenario, phase_of(scenario, self.phase).ok()?)
        };
        Ok(group.finish(failed_gate_of))
    }

    fn backlog_error(&self, arm: Arm, share: f64) -> Error {
        let ms = self.slice.as_millis();
        Error::Verdict(format!(
            "side {arm:?}: of the operations of its slices {:.0} % were unanswered at their end. Either it does not keep up with the \
             rate, or answers take long against {ms} ms: ask for longer slices (--slice-ms {}), or compare whole runs (--slice-ms 0)",
            share * 100.0,
            (ms * 5).min(u128::from(*SLICE_MS.end()))
        ))
    }

    /// A line about the plan.
    pub(super) fn plan_line(&self) -> String {
        format!("both sides stay connected and take turns of {} ms", self.slice.as_millis())
    }
}

fn line(block: usize, blocks: usize, pilot: bool, group: &[Run]) -> String {
    let of_arm = |arm: Arm| {
        let values = group.iter().filter(|run| run.arm == arm).filter_map(|run| run.values.get("throughput"));
        let values: Vec<f64> = values.copied().collect();
        load::statistics::mean(&values)
    };
    let throughput = match pilot {
        true => format!("A {:.1}  A against A", of_arm(Arm::A)),
        false => format!("A {:.1}  B {:.1}", of_arm(Arm::A), of_arm(Arm::B)),
    };
    let failed_gate = group.iter().find_map(|run| run.invalid.as_deref());
    let failed_gate = failed_gate.map(|failed_gate| format!("  left out: {failed_gate}")).unwrap_or_default();
    format!(
        "pairs {block:>3} to {:>3} of about {blocks:<4} throughput {throughput}{failed_gate}",
        block + PAIRS - 1
    )
}
