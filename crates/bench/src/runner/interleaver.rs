//! Alternates two runs of one phase in slices. Both sides stay connected and warm. During a slice of one side the other
//! has nothing in flight. A disturbance that lasts longer than a slice affects both sides alike.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use load::engine::{Ended, Slice};
use load::result::{Bundle, Partial};
use load::scenario::Scenario;
use load::{Error, Result};
use targets::Context;

use super::result_collector::INTERRUPTED;
use super::run::{Options, alone, run_side};
use super::side::{Side, SideEvent, SliceResult};
use crate::ab::Arm;

/// Gives slices to both sides.
#[derive(Debug)]
pub(crate) struct Interleaver {
    sides: [(mpsc::Sender<Slice>, mpsc::Receiver<SideEvent>); 2],
}

impl Interleaver {
    /// Runs one slice of one side. Nothing is in flight on either side before it and after it.
    pub(crate) fn run_slice(&self, arm: Arm, slice: Slice) -> Result<SliceResult> {
        let (slices, events) = &self.sides[arm as usize];
        let gone = || Error::Verdict(format!("side {arm:?} has ended"));
        slices.send(slice).map_err(|_| gone())?;
        let Ok(SideEvent::SliceDone(slice)) = events.recv() else { return Err(gone()) };
        match slice.outcome.ended {
            Ended::Planned => {}
            Ended::Finished => {
                return Err(Error::Options(format!(
                    "the load of side {arm:?} has an end of its own; compare it by whole runs: --slice-ms 0"
                )));
            }
            Ended::Stopped => return Err(interrupted()),
            Ended::Silent | Ended::AllLost => return Err(gone()),
        }
        self.wait_ready(arm)?;
        Ok(*slice)
    }

    /// Waits until a side is ready for its next slice.
    fn wait_ready(&self, arm: Arm) -> Result<()> {
        match self.sides[arm as usize].1.recv() {
            Ok(SideEvent::Ready) => Ok(()),
            _ => Err(Error::Verdict(format!("side {arm:?} has ended"))),
        }
    }
}

/// The error of a comparison or search that Ctrl-C ended.
pub(crate) fn interrupted() -> Error {
    Error::Verdict(format!("{INTERRUPTED}: there is no answer"))
}

/// Runs one phase of two scenarios at the same time; `lead` chooses the slices. Returns the answer of `lead` and the
/// bundle of each side. Without an answer, the bundles are marked as partial or contain the fault that ended the side.
pub(crate) fn interleave<T>(
    sides: [&Scenario; 2],
    phase: &str,
    context: &Context,
    stop: &Arc<AtomicBool>,
    lead: impl FnOnce(&Interleaver) -> Result<T>,
) -> (Result<T>, [Option<Bundle>; 2]) {
    let shares_target = sides[0].target.url == sides[1].target.url;
    let (answered, sides) = thread::scope(|scope| {
        let start_side = |scenario| {
            let (to_side, slices) = mpsc::channel();
            let (events, from_side) = mpsc::channel();
            let side = Side { slices, events, shares_target };
            let phases = vec![String::from(phase)];
            let options = Options { phases, quiet: true, stop: Arc::clone(stop), ..Options::default() };
            let run = scope.spawn(move || run_side(scenario, &options, context, &mut alone, Some(side)));
            ((to_side, from_side), run)
        };
        let (side_a, run_a) = start_side(sides[0]);
        let (side_b, run_b) = start_side(sides[1]);
        let interleaver = Interleaver { sides: [side_a, side_b] };
        let answered = [Arm::A, Arm::B]
            .into_iter()
            .try_for_each(|arm| interleaver.wait_ready(arm))
            .and_then(|()| lead(&interleaver));
        // Sides that wait for a slice end now.
        drop(interleaver);
        (answered, [run_a, run_b].map(|run| run.join().expect("BUG: a side panicked")))
    });
    match (answered, sides) {
        (Ok(answer), [Ok(a), Ok(b)]) => (Ok(answer), [Some(a), Some(b)]),
        (answered, sides) => {
            let error = answered.err().unwrap_or_else(|| Error::Verdict("a side has no result".to_owned()));
            let (error, sides) = without_answer(error, sides, stop.load(Ordering::Relaxed));
            (Err(error), sides)
        }
    }
}

/// The reason for a missing answer, and the bundles worth keeping.
fn without_answer(
    error: Error,
    sides: [Result<Bundle>; 2],
    is_stopped: bool,
) -> (Error, [Option<Bundle>; 2]) {
    let mut failed = None;
    let mut sides = sides.map(|side| side.map_err(|error| failed = failed.take().or(Some(error))).ok());
    // The side's own error explains the end better than that of the leader.
    let error = match failed.or_else(|| first_fault(&sides)) {
        _ if is_stopped => interrupted(),
        Some(of_side) => of_side,
        None => error,
    };
    let reason = if is_stopped { INTERRUPTED.to_owned() } else { error.to_string() };
    for side in sides.iter_mut().flatten() {
        let result = &mut side.result;
        if result.partial.is_none() && result.faults.is_empty() {
            result.partial = Some(Partial { reason: reason.clone(), at_s: result.took_s });
            result.settle();
        }
    }
    // A side without a slice has nothing to keep.
    (error, sides.map(|side| side.filter(|side| !side.result.phases.is_empty())))
}

fn first_fault(sides: &[Option<Bundle>; 2]) -> Option<Error> {
    let of_both = [Arm::A, Arm::B].into_iter().zip(sides).filter_map(|(arm, side)| {
        let fault = side.as_ref()?.result.faults.first()?;
        Some((arm, fault))
    });
    let (arm, fault) = of_both.min_by(|(_, one), (_, other)| one.at_s.total_cmp(&other.at_s))?;
    Some(Error::Verdict(format!("side {arm:?}, second {:.0}: {}", fault.at_s, fault.what)))
}
