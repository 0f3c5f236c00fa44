//! The time by which retention drops rows: the time of the wall clock, as far as it is plausible.
//!
//! A wall clock that is wrong by years would drop all rows at once. So the store keeps a time of its own. This time never
//! passes the wall clock, and follows it at most at [`RETENTION_PACE`] times the speed of the monotonic clock. It always
//! reaches a right clock; after a pause of a month that takes about a day. A wrong clock drops a day of rows per hour
//! instead of all rows at once, and the store reports it.
//!
//! The manifest records the time, so a restart is not a leap either. Before the first record the newest row is the bound.

use std::time::Duration;

use model::Timestamp;
use model::limits::RETENTION_PACE;
use store::table::DAY_US;

/// The progress of retention.
#[derive(Debug)]
pub(crate) struct RetentionTime {
    /// Microseconds since 1970; `None` before the first row.
    reached: Option<i64>,
    /// The time in the manifest.
    noted: Option<i64>,
    /// The time of the monotonic clock at the last call.
    looked_us: u64,
}

impl RetentionTime {
    /// Continues from the time in the manifest.
    pub(crate) fn new(noted: Option<i64>, clock_us: u64) -> Self {
        Self { reached: noted, noted, looked_us: clock_us }
    }

    /// Moves towards `now` as far as the pace allows. `newest` gives the time of the newest row. Returns the time by which
    /// rows may be dropped; `None` before the first row.
    pub(crate) fn advance(
        &mut self,
        now: Timestamp,
        clock_us: u64,
        newest: impl FnOnce() -> Option<i64>,
    ) -> Option<Timestamp> {
        let passed_us = clock_us.saturating_sub(self.looked_us);
        self.looked_us = clock_us;
        let may_reach = match self.reached {
            Some(reached) => {
                let pace = i64::try_from(passed_us.saturating_mul(RETENTION_PACE)).unwrap_or(i64::MAX);
                reached.saturating_add(pace)
            }
            None => newest()?.saturating_add(DAY_US),
        };
        // A clock that is behind stops retention. It does not move the time back.
        let reached = may_reach.min(now.micros()).max(self.reached.unwrap_or(i64::MIN));
        self.reached = Some(reached);
        Some(Timestamp::from_micros(reached.min(now.micros())))
    }

    /// The time to record in the manifest; `None` while it has moved by less than a day.
    pub(crate) fn to_note(&self) -> Option<i64> {
        let reached = self.reached?;
        self.noted.is_none_or(|noted| reached.saturating_sub(noted) >= DAY_US).then_some(reached)
    }

    /// Notes that the manifest has this time.
    pub(crate) fn set_noted(&mut self, noted: i64) {
        self.noted = Some(noted);
    }
}

/// How far the wall clock is ahead of the time by which rows are dropped; `None` up to a day.
pub(crate) fn ahead(now: Timestamp, reached: Timestamp) -> Option<Duration> {
    let ahead_us = u64::try_from(now.micros().saturating_sub(reached.micros())).ok()?;
    (ahead_us > DAY_US.unsigned_abs()).then(|| Duration::from_micros(ahead_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: u64 = 3_600_000_000;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_micros(day * DAY_US)
    }

    #[test]
    fn a_clock_far_ahead_is_followed_slowly() {
        let mut time = RetentionTime::new(Some(at(10).micros()), 0);
        let no_row = || None;
        assert_eq!(time.advance(at(20_000), 0, no_row), Some(at(10)));
        assert_eq!(time.advance(at(20_000), HOUR_US, no_row), Some(at(11)));
        assert_eq!(time.advance(at(20_000), 3 * HOUR_US, no_row), Some(at(13)));
        // The clock is right again: nothing is dropped by a later time than it shows, and nothing is turned back.
        assert_eq!(time.advance(at(12), 3 * HOUR_US, no_row), Some(at(12)));
        assert_eq!(time.advance(at(14), 4 * HOUR_US, no_row), Some(at(14)));
    }

    #[test]
    fn a_right_clock_is_the_time() {
        let mut time = RetentionTime::new(None, 0);
        assert_eq!(time.advance(at(100), 0, || None), None, "no row, nothing to drop");
        assert_eq!(time.advance(at(100), 0, || Some(at(99).micros() + 5)), Some(at(100)));
        for minute in 1..100 {
            let now = Timestamp::from_micros(at(100).micros() + minute * 60_000_000);
            assert_eq!(time.advance(now, minute as u64 * 60_000_000, || None), Some(now));
        }
        assert_eq!(time.advance(at(0), 0, || None), Some(at(0)), "a clock without a battery");
    }

    #[test]
    fn before_anything_is_noted_the_newest_row_is_the_bound() {
        let mut time = RetentionTime::new(None, 0);
        assert_eq!(time.advance(at(20_000), 9 * HOUR_US, || Some(at(5).micros())), Some(at(6)));
        assert_eq!(time.to_note(), Some(at(6).micros()));
        time.set_noted(at(6).micros());
        assert_eq!(time.to_note(), None);
        assert_eq!(time.advance(at(20_000), 10 * HOUR_US, || Some(at(20_000).micros())), Some(at(7)));
        assert_eq!(time.to_note(), Some(at(7).micros()));
        assert_eq!(ahead(at(20_000), at(7)), Some(Duration::from_secs(19_993 * 86_400)));
        assert_eq!(ahead(at(7), at(6)), None);
    }
}
