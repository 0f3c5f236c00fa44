//! The order of the segments of a run.

use super::{Ended, Plan, SegmentOutcome, Shared, Slice};

/// Carries out the segments of a plan in order. With a slice source it repeats the first segment once per slice, and
/// the outcome is the sum of all slices.
pub(super) fn each_segment(
    plan: &Plan,
    shared: &Shared,
    mut carry_out: impl FnMut(usize, Option<Slice>) -> SegmentOutcome,
) -> Vec<SegmentOutcome> {
    let mut segments: Vec<SegmentOutcome> = Vec::new();
    let Some(slices) = shared.slices() else {
        for index in 0..plan.segments.len() {
            if shared.is_stopped() || segments.last().is_some_and(|s| s.ended >= Ended::Stopped) {
                break;
            }
            segments.push(carry_out(index, None));
        }
        return segments;
    };
    while let Some(slice) = slices.next() {
        let outcome = carry_out(0, Some(slice));
        let is_over = outcome.ended >= Ended::Stopped;
        match segments.first_mut() {
            Some(sum) => sum.follow(&outcome),
            None => segments.push(outcome.clone()),
        }
        slices.over(outcome);
        if is_over {
            break;
        }
    }
    segments
}
