//! Runs in slices: two runs alternate on one machine, and a slice source states when each may continue.

use std::time::Duration;

use super::{Load, ReopenTrigger, Segment, SegmentOutcome};

/// A short part of a load. Another run may have a slice before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// The first part, which is not measured.
    pub warmup: Duration,
    /// The measured part.
    pub duration: Duration,
    /// The seed of everything random in the slice. Two slices with one seed use the same keys, and the same times on a
    /// schedule.
    pub seed: u64,
}

/// Gives a run its slices.
pub trait SliceSource: std::fmt::Debug + Send + Sync {
    /// Waits for the next slice; `None` after the last one.
    fn next(&self) -> Option<Slice>;

    /// Reports the outcome of a slice. Nothing of it is in flight any more.
    fn over(&self, outcome: SegmentOutcome);
}

impl Segment {
    /// The same load with the length of the slice and a schedule of its own; unchanged without a slice.
    pub(super) fn in_slice(&self, slice: Option<Slice>) -> Self {
        let Some(Slice { warmup, duration, seed }) = slice else { return self.clone() };
        let loads = self.loads.iter().map(|load| load.reseeded(seed)).collect();
        Self { loads, warmup, duration, ..self.clone() }
    }
}

impl Load {
    /// The same load with another seed. Loads with different schedules keep different schedules.
    fn reseeded(self, by: u64) -> Self {
        match self {
            Self::Open { rate, arrivals, timer_us, seed } => {
                Self::Open { rate, arrivals, timer_us, seed: seed.wrapping_add(by) }
            }
            Self::Reopen { when: ReopenTrigger::Scheduled { rate, arrivals, seed }, close, class, then } => {
                let when = ReopenTrigger::Scheduled { rate, arrivals, seed: seed.wrapping_add(by) };
                Self::Reopen { when, close, class, then }
            }
            Self::Closed { .. } | Self::Idle | Self::Reopen { .. } | Self::Sample { .. } => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{AfterReopen, Close};
    use crate::schedule::Arrivals;

    #[test]
    fn a_turn_has_a_schedule_by_its_seed_and_no_two_loads_share_one() {
        let open = |seed| Load::Open { rate: 1.0, arrivals: Arrivals::Poisson, timer_us: 0, seed };
        let again = |when| Load::Reopen { when, close: Close::Fin, class: 0, then: AfterReopen::Close };
        let scheduled = |seed| again(ReopenTrigger::Scheduled { rate: 1.0, arrivals: Arrivals::Fixed, seed });
        let closed = Load::Closed { window: 1, pause: Duration::ZERO };
        let second = Duration::from_secs(1);
        let loads = vec![open(1), scheduled(2), closed, again(ReopenTrigger::Again)];
        let segment = Segment { name: String::new(), loads, warmup: second, duration: second, drain: second };
        let slice = Slice { warmup: Duration::ZERO, duration: second / 20, seed: u64::MAX };
        let cut = segment.in_slice(Some(slice));
        assert_eq!(cut.loads, [open(0), scheduled(1), closed, again(ReopenTrigger::Again)]);
        assert_eq!((cut.warmup, cut.duration, cut.drain), (slice.warmup, slice.duration, second));
        assert_eq!(segment.in_slice(None).loads, segment.loads);
    }
}
