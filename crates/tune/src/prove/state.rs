//! The state machine of a proof: changed and restored before the runs, measured, then rolled back or kept. Pure functions.

use bench::ab::Arm;
use load::statistics::paired::Verdict;
use serde::Serialize;

/// Whether the change is on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeState {
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
pub(super) fn before(place: ChangeState, arm: Arm) -> Step {
    match (arm, place) {
        (Arm::A, ChangeState::Out) | (Arm::B, ChangeState::In) => Step::Stay,
        (Arm::A, ChangeState::In | ChangeState::Unsure) => Step::Undo,
        (Arm::B, ChangeState::Out | ChangeState::Unsure) => Step::Change,
    }
}

/// The last step, and whether the change stays. `verdict` is `None` if the proof has broken off.
pub(super) fn last(place: ChangeState, verdict: Option<Verdict>, keep: bool) -> (Step, bool) {
    let stays = keep && verdict == Some(Verdict::Better) && place != ChangeState::Unsure;
    match (stays, place) {
        (true, ChangeState::In) | (false, ChangeState::Out) => (Step::Stay, stays),
        (true, _) => (Step::Change, stays),
        (false, _) => (Step::Undo, stays),
    }
}

/// The place after a step that has succeeded.
pub(super) fn after(place: ChangeState, step: Step) -> ChangeState {
    match step {
        Step::Stay => place,
        Step::Change => ChangeState::In,
        Step::Undo => ChangeState::Out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_changed_only_when_an_arm_needs_it() {
        assert_eq!(before(ChangeState::Out, Arm::A), Step::Stay);
        assert_eq!(before(ChangeState::Out, Arm::B), Step::Change);
        assert_eq!(before(ChangeState::In, Arm::B), Step::Stay);
        assert_eq!(before(ChangeState::In, Arm::A), Step::Undo);
        assert_eq!(before(ChangeState::Unsure, Arm::A), Step::Undo);
    }

    #[test]
    fn a_proof_ends_as_it_began_unless_the_change_is_better_and_shall_stay() {
        for verdict in [Verdict::Better, Verdict::Worse, Verdict::Equivalent, Verdict::CannotTell] {
            assert_eq!(last(ChangeState::In, Some(verdict), false), (Step::Undo, false));
            assert_eq!(last(ChangeState::Out, Some(verdict), false), (Step::Stay, false));
            let is_better = verdict == Verdict::Better;
            assert_eq!(last(ChangeState::In, Some(verdict), true).1, is_better);
            assert_eq!(
                last(ChangeState::Out, Some(verdict), true).0,
                if is_better { Step::Change } else { Step::Stay }
            );
        }
    }

    #[test]
    fn a_proof_that_broke_off_is_rolled_back_even_if_it_shall_keep() {
        assert_eq!(last(ChangeState::In, None, true), (Step::Undo, false));
        assert_eq!(last(ChangeState::Unsure, None, true), (Step::Undo, false));
        assert_eq!(last(ChangeState::Unsure, Some(Verdict::Better), true), (Step::Undo, false));
        assert_eq!(last(ChangeState::Out, None, true), (Step::Stay, false));
    }

    #[test]
    fn a_step_leads_to_its_place() {
        assert_eq!(after(ChangeState::Out, before(ChangeState::Out, Arm::B)), ChangeState::In);
        assert_eq!(after(ChangeState::In, before(ChangeState::In, Arm::A)), ChangeState::Out);
        assert_eq!(after(ChangeState::In, before(ChangeState::In, Arm::B)), ChangeState::In);
    }
}
