//! Receipt times.

use model::Timestamp;
use parking_lot::Mutex;

pub use crate::registry::system_now;

/// How far the system clock may be set back before receipt times follow it. Up to this bound they keep growing, so no two rows of
/// a device share a time. Beyond it, rows would be in the future for too long.
const FOLLOWED_FROM_US: i64 = 60_000_000;

/// Assigns receipt times that are unique and follow the system clock.
///
/// There is one clock for the process, because a device may report through several doors at once. Times are unique until the
/// system clock is set back by more than a minute; then an earlier time may repeat.
#[derive(Debug, Default)]
pub struct ReceiptClock {
    state: Mutex<State>,
}

impl ReceiptClock {
    /// A clock that continues after the last time of a former process, if it is known.
    pub(crate) fn after(last: Option<Timestamp>) -> Self {
        let state = last.map(|last| State { given: last.micros(), shown: last.micros() });
        Self { state: Mutex::new(state.unwrap_or_default()) }
    }

    /// The last assigned time, if any.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        let given = self.state.lock().given;
        (given != i64::MIN).then_some(Timestamp::from_micros(given))
    }

    /// The next receipt time.
    pub fn next(&self) -> Timestamp {
        self.next_of(system_now)
    }

    /// The next receipt time by another clock than the system clock. The clock is read under the lock, so a reading from before a
    /// change of the clock is not used after it.
    fn next_of(&self, clock: impl FnOnce() -> Timestamp) -> Timestamp {
        let mut state = self.state.lock();
        let now = clock().micros();
        Timestamp::from_micros(state.next(now))
    }
}

/// The state of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    /// The last assigned time.
    given: i64,
    /// The latest system time since the last accepted setback.
    shown: i64,
}

impl Default for State {
    fn default() -> Self {
        Self { given: i64::MIN, shown: i64::MIN }
    }
}

impl State {
    /// The next time at the system time `now`: `now`, or a microsecond after the last time.
    fn next(&mut self, now: i64) -> i64 {
        if self.shown.saturating_sub(now) > FOLLOWED_FROM_US {
            *self = Self { given: now, shown: now };
        } else {
            self.given = now.max(self.given.saturating_add(1));
            self.shown = self.shown.max(now);
        }
        self.given
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND_US: i64 = 1_000_000;

    fn given(readings: &[i64]) -> Vec<i64> {
        let clock = ReceiptClock::default();
        let next = |now: &i64| clock.next_of(|| Timestamp::from_micros(*now)).micros();
        readings.iter().map(next).collect()
    }

    #[test]
    fn times_differ_while_the_clock_stands_still() {
        assert_eq!(given(&[10, 10, 10, 11, 50]), [10, 11, 12, 13, 50]);
        assert_eq!(given(&[-5, -5, 0]), [-5, -4, 0]);
    }

    #[test]
    fn times_do_not_repeat_when_the_clock_is_set_back_a_little() {
        let readings = [100 * SECOND_US, 99 * SECOND_US, 40 * SECOND_US, 101 * SECOND_US];
        assert_eq!(given(&readings), [100_000_000, 100_000_001, 100_000_002, 101_000_000]);
    }

    #[test]
    fn a_clock_set_back_by_more_than_a_minute_is_followed_once() {
        let readings = [100 * SECOND_US, 39 * SECOND_US, 39 * SECOND_US, 40 * SECOND_US];
        assert_eq!(given(&readings), [100_000_000, 39_000_000, 39_000_001, 40_000_000]);
    }

    #[test]
    fn a_restart_continues_after_the_last_time() {
        let former = ReceiptClock::default();
        assert_eq!(former.last(), None);
        former.next_of(|| Timestamp::from_micros(100 * SECOND_US));
        let next = |now| ReceiptClock::after(former.last()).next_of(|| Timestamp::from_micros(now)).micros();
        assert_eq!(next(90 * SECOND_US), 100 * SECOND_US + 1);
        assert_eq!(next(130 * SECOND_US), 130 * SECOND_US);
        assert_eq!(next(SECOND_US), SECOND_US, "set back by more than a minute");
    }

    #[test]
    fn times_that_run_ahead_of_the_clock_are_no_clock_change() {
        let mut state = State { given: 10 * FOLLOWED_FROM_US, shown: 0 };
        assert_eq!(state.next(1), 10 * FOLLOWED_FROM_US + 1);
        assert_eq!(state.next(2), 10 * FOLLOWED_FROM_US + 2);
    }

    proptest! {
        #[test]
        fn times_grow_and_are_never_behind_the_clock(
            start in 0..1_000 * SECOND_US,
            steps in prop::collection::vec(-SECOND_US..2 * SECOND_US, 1..200),
        ) {
            let mut state = State::default();
            let (mut now, mut latest) = (start, start);
            let mut last = i64::MIN;
            for step in steps {
                now += step;
                latest = latest.max(now);
                // A minute in all is followed; below it nothing may repeat.
                now = now.max(latest - FOLLOWED_FROM_US);
                let next = state.next(now);
                prop_assert!(next > last && next >= now);
                last = next;
            }
        }

        #[test]
        fn threads_share_no_time(rows in 1..200_usize) {
            let clock = ReceiptClock::default();
            let take = || (0..rows).map(|_| clock.next()).collect::<Vec<_>>();
            let mut all: Vec<Timestamp> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..3).map(|_| scope.spawn(take)).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), 3 * rows);
        }
    }
}
