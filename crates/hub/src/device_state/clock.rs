//! A clock that never goes back.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use crate::clock::system_now;

/// The system clock, which continues from the latest time if the system clock is set back.
#[derive(Debug)]
pub(super) struct StateClock {
    began: Instant,
    /// The most that the system clock was ahead of the time since `began`, in microseconds: in milliseconds the difference of two
    /// rounded times would change by one.
    ahead_us: AtomicI64,
    /// How far the system clock was behind this clock when it was read last, in microseconds.
    behind_us: AtomicI64,
}

impl StateClock {
    pub(super) fn new() -> Self {
        let clock =
            Self { began: Instant::now(), ahead_us: AtomicI64::new(i64::MIN), behind_us: AtomicI64::new(0) };
        clock.now_ms();
        clock
    }

    /// The present time in milliseconds.
    pub(super) fn now_ms(&self) -> i64 {
        // A pause between the two readings must not set the clock forward, so the system clock is read first.
        let system_us = system_now().micros();
        let elapsed_us = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        self.read_us(system_us, elapsed_us) / 1_000
    }

    /// The time of this clock for a reading of the system clock by somebody else. It may be late by one search for silent devices
    /// after the system clock was set.
    pub(super) fn of_system(&self, system_ms: i64) -> i64 {
        system_ms.saturating_add(self.behind_us.load(Ordering::Relaxed) / 1_000)
    }

    fn read_us(&self, system_us: i64, elapsed_us: i64) -> i64 {
        let ahead_us = system_us.saturating_sub(elapsed_us);
        let most_us = self.ahead_us.fetch_max(ahead_us, Ordering::Relaxed).max(ahead_us);
        self.behind_us.store(most_us - ahead_us, Ordering::Relaxed);
        most_us.saturating_add(elapsed_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_continues() {
        let clock = StateClock {
            began: Instant::now(),
            ahead_us: AtomicI64::new(i64::MIN),
            behind_us: AtomicI64::new(0),
        };
        let read =
            |system_ms: i64, elapsed_ms: i64| clock.read_us(system_ms * 1_000, elapsed_ms * 1_000) / 1_000;
        assert_eq!(read(1_000, 0), 1_000);
        assert_eq!(read(1_010, 10), 1_010);
        // An hour back.
        assert_eq!(read(1_020 - 3_600_000, 20), 1_020);
        assert_eq!(clock.of_system(1_025 - 3_600_000), 1_025);
        assert_eq!(read(1_030 - 3_600_000, 30), 1_030);
        // Forward again, by more than it went back.
        assert_eq!(read(5_040, 40), 5_040);
        assert_eq!(clock.of_system(5_050), 5_050);
    }
}
