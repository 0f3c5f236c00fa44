//! The time of receipt.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use model::Timestamp;

/// How far back the system clock may step before receipt times follow it. Within this bound they keep growing, so
/// that two messages of one device never share a time by accident.
const STEP_BACK_MAX_US: i64 = 1_000_000;

/// Gives out receipt times that differ from each other and follow the system clock.
#[derive(Debug, Default)]
pub struct ReceiptClock {
    last: AtomicI64,
}

impl ReceiptClock {
    /// The next receipt time for the system's present time.
    pub fn next(&self) -> Timestamp {
        self.next_at(system_now())
    }

    /// The next receipt time when the system clock shows `now`.
    pub fn next_at(&self, now: Timestamp) -> Timestamp {
        let step = |last: i64| Some(successor(last, now.micros()));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        let (Ok(last) | Err(last)) = last;
        Timestamp::from_micros(successor(last, now.micros()))
    }
}

/// One microsecond after the last one while the clock stands still or steps back a little, the clock's time otherwise.
fn successor(last: i64, now: i64) -> i64 {
    let stepped_back_us = last.saturating_sub(now);
    if (0..STEP_BACK_MAX_US).contains(&stepped_back_us) { last + 1 } else { now }
}

/// The system clock.
pub fn system_now() -> Timestamp {
    let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    };
    Timestamp::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_differ_while_the_clock_stands_still() {
        let clock = ReceiptClock::default();
        let at = |micros| clock.next_at(Timestamp::from_micros(micros)).micros();
        assert_eq!([at(10), at(10), at(10), at(11), at(50)], [10, 11, 12, 13, 50]);
    }

    #[test]
    fn a_small_step_back_is_bridged_and_a_large_one_followed() {
        let clock = ReceiptClock::default();
        let at = |micros| clock.next_at(Timestamp::from_micros(micros)).micros();
        assert_eq!(at(5_000_000), 5_000_000);
        assert_eq!(at(4_999_000), 5_000_001);
        assert_eq!(at(1_000_000), 1_000_000);
        assert_eq!(at(1_000_000), 1_000_001);
    }
}
