//! The state machine of a proof: changed and restored before the runs, measured, then rolled back or kept. Pure functions.

use bench::ab::Arm;
use load::statistics::paired::Verdict;
use serde::Serialize;

/// Whether the change is on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The target is as it was.
    Out,
    /// The change is made.
    In,
    /// A step has failed, or the target has started again by itself: it may be either.
    Unsure,
}

/// A step on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: the target is as it shall be.
    Stay,
    /// The change is made.
    Change,
    /// The change is undone.
    Undo,
}

/// The end of a proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The target has its former value.
    RolledBack,
    /// The change is better and stays.
    Kept,
    /// The change could not be undone, and why.
    NotRolledBack(String),
}

/// The step before a run of an arm.
pub(super) fn before(place: Place, arm: Arm) -> Step {
    match (arm, place) {
        (Arm::A, Place::Out) | (Arm::B, Place::In) => Step::Stay,
        (Arm::A, Place::In | Place::Unsure) => Step::Undo,
        (Arm::B, Place::Out | Place::Unsure) => Step::Change,
    }
}

/// The last step, and whether the change stays. `verdict` is `None` if the proof has broken off.
pub(super) fn last(place: Place, verdict: Option<Verdict>, keep: bool) -> (Step, bool) {
    let stays = keep && verdict == Some(Verdict::Better) && place != Place::Unsure;
    match (stays, place) {
        (true, Place::In) | (false, Place::Out) => (Step::Stay, stays),
        (true, _) => (Step::Change, stays),
        (false, _) => (Step::Undo, stays),
    }
}

/// The place after a step that has succeeded.
pub(super) fn after(place: Place, step: Step) -> Place {
    match step {
        Step::Stay => place,
        Step::Change => Place::In,
        Step::Undo => Place::Out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_changed_only_when_an_arm_needs_it() {
        assert_eq!(before(Place::Out, Arm::A), Step::Stay);
        assert_eq!(before(Place::Out, Arm::B), Step::Change);
        assert_eq!(before(Place::In, Arm::B), Step::Stay);
        assert_eq!(before(Place::In, Arm::A), Step::Undo);
        assert_eq!(before(Place::Unsure, Arm::A), Step::Undo);
    }

    #[test]
    fn a_proof_ends_as_it_began_unless_the_change_is_better_and_shall_stay() {
        for verdict in [Verdict::Better, Verdict::Worse, Verdict::Equivalent, Verdict::CannotTell] {
            assert_eq!(last(Place::In, Some(verdict), false), (Step::Undo, false));
            assert_eq!(last(Place::Out, Some(verdict), false), (Step::Stay, false));
            let is_better = verdict == Verdict::Better;
            assert_eq!(last(Place::In, Some(verdict), true).1, is_better);
            assert_eq!(
                last(Place::Out, Some(verdict), true).0,
                if is_better { Step::Change } else { Step::Stay }
            );
        }
    }

    #[test]
    fn a_proof_that_broke_off_is_rolled_back_even_if_it_shall_keep() {
        assert_eq!(last(Place::In, None, true), (Step::Undo, false));
        assert_eq!(last(Place::Unsure, None, true), (Step::Undo, false));
        assert_eq!(last(Place::Unsure, Some(Verdict::Better), true), (Step::Undo, false));
        assert_eq!(last(Place::Out, None, true), (Step::Stay, false));
    }

    #[test]
    fn a_step_leads_to_its_place() {
        assert_eq!(after(Place::Out, before(Place::Out, Arm::B)), Place::In);
        assert_eq!(after(Place::In, before(Place::In, Arm::A)), Place::Out);
        assert_eq!(after(Place::In, before(Place::In, Arm::B)), Place::In);
    }
}
