//! Two runs that take turns on one machine: whoever leads them says when each may go on.

use std::time::Duration;

use super::{Ended, Plan, Segment, SegmentOutcome, Shared};

/// A short part of a load, before and after which another run may have its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Its beginning, which is not measured.
    pub warmup: Duration,
    /// Its measured part.
    pub duration: Duration,
    /// What is drawn in it: two turns with one seed ask for the same keys.
    pub seed: u64,
}

/// Leads a run through its turns.
pub trait Turns: std::fmt::Debug + Send + Sync {
    /// Waits for the next turn; `None` when there is none to come.
    fn next(&self) -> Option<Turn>;

    /// A turn is over and nothing of it is in flight any more.
    fn over(&self, outcome: SegmentOutcome);
}

impl Segment {
    /// The same load as long as a turn lasts; as it is without one.
    pub(super) fn in_turn(&self, turn: Option<Turn>) -> Self {
        let (warmup, duration) =
            turn.map_or((self.warmup, self.duration), |turn| (turn.warmup, turn.duration));
        Self { warmup, duration, ..self.clone() }
    }
}

/// Carries out the segments of a plan in their order. With turns it is the first segment again and again, and the outcome
/// is the sum of all turns.
pub(super) fn each_segment(
    plan: &Plan,
    shared: &Shared,
    mut carry_out: impl FnMut(usize, Option<Turn>) -> SegmentOutcome,
) -> Vec<SegmentOutcome> {
    let mut segments: Vec<SegmentOutcome> = Vec::new();
    let Some(turns) = shared.turns() else {
        for index in 0..plan.segments.len() {
            if shared.is_stopped() || segments.last().is_some_and(|s| s.ended >= Ended::Stopped) {
                break;
            }
            segments.push(carry_out(index, None));
        }
        return segments;
    };
    while let Some(turn) = turns.next() {
        let outcome = carry_out(0, Some(turn));
        let is_over = outcome.ended >= Ended::Stopped;
        match segments.first_mut() {
            Some(sum) => sum.follow(&outcome),
            None => segments.push(outcome.clone()),
        }
        turns.over(outcome);
        if is_over {
            break;
        }
    }
    segments
}
