//! Segments one after the other, each with a driver of its own.

use crate::engine::{Ended, Event, Plan, Segment, SegmentOutcome, Shared};
use crate::error::Result;
use crate::protocol::Blocking;

/// Runs the segments in turn, until one is stopped or breaks off. `driver_of` makes the driver of a segment by its index, and events
/// have this index.
pub fn run_in_turn<B: Blocking>(
    segments: Vec<Segment>,
    whole: &Plan,
    shared: &Shared,
    driver_of: impl Fn(usize) -> Result<B>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Vec<SegmentOutcome>> {
    let mut outcomes: Vec<SegmentOutcome> = Vec::new();
    for (index, segment) in segments.into_iter().enumerate() {
        let plan = Plan { segments: vec![segment], ..whole.clone() };
        let outcome = super::run(&driver_of(index)?, &plan, shared, |event| {
            on_event(match event {
                Event::Started { at, .. } => Event::Started { segment: index, at },
                other => other,
            });
        })?;
        outcomes.extend(outcome.segments);
        if outcomes.last().is_none_or(|outcome| outcome.ended >= Ended::Stopped) {
            break;
        }
    }
    Ok(outcomes)
}
