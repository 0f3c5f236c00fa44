//! When a rule applies.

use chrono::{DateTime, Datelike, NaiveTime, Utc};
use chrono_tz::Tz;
use model::Timestamp;
use model::calendar::local_offsets;

/// Milliseconds of a day without a change of clocks.
pub(super) const DAY_MS: i64 = 86_400_000;

/// When a rule applies.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Schedule {
    Always,
    /// The same hours on some days of the week, in a time zone.
    Specific {
        zone: Tz,
        days: Weekdays,
        hours: Hours,
    },
    /// Hours of each day of the week, from Monday on; `None` for a day on which it does not apply.
    Custom {
        zone: Tz,
        days: Box<[Option<Hours>; 7]>,
    },
}

/// Days of the week: a bit for each, from Monday on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Weekdays(u8);

/// A part of a day in milliseconds since its beginning. It passes midnight if it ends before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hours {
    pub(super) starts_ms: i64,
    pub(super) ends_ms: i64,
}

impl Schedule {
    /// Whether the rule applies at a time.
    pub(super) fn is_active(&self, at: Timestamp) -> bool {
        match self {
            Self::Always => true,
            Self::Specific { zone, days, hours } => {
                let (day, since_ms) = local(*zone, at);
                days.has(day) && hours.has(since_ms)
            }
            Self::Custom { zone, days } => {
                let (day, since_ms) = local(*zone, at);
                days[day].is_some_and(|hours| hours.has(since_ms))
            }
        }
    }
}

impl Weekdays {
    /// Adds a day, from 0 for Monday on.
    pub(super) fn add(&mut self, day: usize) {
        self.0 |= 1 << day;
    }

    fn has(self, day: usize) -> bool {
        self.0 & (1 << day) != 0
    }
}

impl Hours {
    fn has(self, ms: i64) -> bool {
        match self.starts_ms <= self.ends_ms {
            true => (self.starts_ms..self.ends_ms).contains(&ms),
            false => self.starts_ms < ms || ms < self.ends_ms,
        }
    }
}

/// The day of the week, from 0 for Monday on, and the milliseconds since the beginning of the day.
fn local(zone: Tz, at: Timestamp) -> (usize, i64) {
    let utc = DateTime::<Utc>::from_timestamp_micros(at.micros()).unwrap_or_default();
    let local = utc.with_timezone(&zone);
    let midnight = local.date_naive().and_time(NaiveTime::MIN);
    // Where clocks skip midnight, the day begins at the first time that exists: the same as midnight without the change.
    let start_s = local_offsets(&zone, midnight)
        .map(|offsets| midnight.and_utc().timestamp() - i64::from(offsets.first()));
    let since_ms = start_s.map_or(0, |start_s| utc.timestamp_millis() - start_s * 1_000);
    (local.weekday().num_days_from_monday() as usize, since_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        let time = DateTime::parse_from_rfc3339(text).unwrap();
        Timestamp::from_micros(time.timestamp_micros())
    }

    fn hours(starts: i64, ends: i64) -> Hours {
        Hours { starts_ms: starts * 3_600_000, ends_ms: ends * 3_600_000 }
    }

    #[test]
    fn hours_are_local_and_end_before_their_end() {
        let mut days = Weekdays::default();
        (0..5).for_each(|day| days.add(day));
        let zone = chrono_tz::Europe::Berlin;
        let schedule = Schedule::Specific { zone, days, hours: hours(8, 17) };
        // Monday in winter: Berlin is an hour ahead of UTC.
        assert!(!schedule.is_active(at("2026-01-05T06:59:59Z")));
        assert!(schedule.is_active(at("2026-01-05T07:00:00Z")));
        assert!(!schedule.is_active(at("2026-01-05T16:00:00Z")));
        assert!(!schedule.is_active(at("2026-01-04T10:00:00Z")), "Sunday");
        // In summer two hours.
        assert!(schedule.is_active(at("2026-07-06T06:00:00Z")));
    }

    #[test]
    fn hours_that_end_before_they_begin_pass_midnight() {
        let mut days = Box::new([None; 7]);
        days[4] = Some(hours(22, 6));
        let schedule = Schedule::Custom { zone: chrono_tz::UTC, days };
        // 2026-01-09 is a Friday.
        for (time, active) in [("05:59", true), ("06:00", false), ("21:59", false), ("22:01", true)] {
            assert_eq!(schedule.is_active(at(&format!("2026-01-09T{time}:00Z"))), active, "{time}");
        }
        assert!(!schedule.is_active(at("2026-01-10T23:00:00Z")), "Saturday");
    }
}
