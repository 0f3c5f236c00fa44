//! Intervals that follow the calendar of a time zone.
//!
//! The places where intervals begin are those of OpenTSDB, which counts them from a larger unit: minutes from the hour or the day,
//! hours from the day or the month, days from the month or the year, weeks from a Sunday, months and years from January.

use chrono::{DateTime, Datelike, Days, Months, NaiveDateTime, NaiveTime, Offset, TimeZone, Timelike};
use chrono_tz::Tz;
use model::calendar::local_offsets;

use super::interval::{Interval, Unit};

/// Intervals of a calendar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Calendar {
    pub(super) interval: Interval,
    pub(super) zone: Tz,
}

impl Calendar {
    /// The start of the interval that contains a time.
    pub(super) fn start_of(&self, millis: i64) -> i64 {
        let start = self.first_near(millis);
        if start == millis {
            return start;
        }
        let step = match self.interval.unit {
            Unit::Week => Interval { count: 7, unit: Unit::Day },
            _ => self.interval,
        };
        let mut at = start;
        while at <= millis {
            let next = self.add(at, step, 1);
            if next <= at {
                break;
            }
            at = next;
        }
        self.add(at, step, -1)
    }

    /// The start of the interval after, or before, the one that begins at a time.
    pub(super) fn step(&self, millis: i64, forward: bool) -> i64 {
        self.add(millis, self.interval, if forward { 1 } else { -1 })
    }

    fn add(&self, millis: i64, interval: Interval, sign: i64) -> i64 {
        let count = i64::from(interval.count) * sign;
        match interval.unit {
            Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour => {
                millis.saturating_add(interval.millis() * sign)
            }
            Unit::Day => self.add_days(millis, count),
            Unit::Week => self.add_days(millis, count * 7),
            Unit::Month => self.add_months(millis, count),
            Unit::Year => self.add_months(millis, count * 12),
        }
    }

    /// Adds days; the time of day stays, unless the clock skips it.
    fn add_days(&self, millis: i64, days: i64) -> i64 {
        const DAY: i64 = 86_400_000;
        let moved = millis.saturating_add(days * DAY);
        let difference = self.offset(millis) - self.offset(moved);
        let corrected = moved + difference;
        let date = |at| (at + self.offset(at)).div_euclid(DAY);
        match date(corrected) == (moved + self.offset(millis)).div_euclid(DAY) {
            true => corrected,
            false => moved,
        }
    }

    fn add_months(&self, millis: i64, months: i64) -> i64 {
        let local = self.local(millis);
        let by = Months::new(months.unsigned_abs().min(u64::from(u32::MAX)) as u32);
        let moved = if months < 0 { local.checked_sub_months(by) } else { local.checked_add_months(by) };
        moved.map_or(if months < 0 { i64::MIN / 2 } else { i64::MAX / 2 }, |local| self.instant(local))
    }

    /// The nearest start of the larger unit, from which intervals are counted.
    fn first_near(&self, millis: i64) -> i64 {
        let local = self.local(millis);
        let (time, date) = (local.time(), local.date());
        let day = |date: Option<chrono::NaiveDate>| date.unwrap_or(local.date()).and_time(NaiveTime::MIN);
        let count = self.interval.count;
        let start = match self.interval.unit {
            Unit::Millisecond if 1000 % count == 0 => local.date().and_time(second(time)),
            Unit::Millisecond => date.and_time(minute(time)),
            Unit::Second if 60 % count == 0 => date.and_time(minute(time)),
            Unit::Second => date.and_time(hour(time)),
            Unit::Minute if 60 % count == 0 => date.and_time(hour(time)),
            Unit::Minute => day(Some(date)),
            Unit::Hour if 24 % count == 0 => day(Some(date)),
            Unit::Hour => day(date.with_day(1)),
            Unit::Day if count == 1 => day(date.with_day(1)),
            Unit::Week if 2 % count == 0 => day(Some(sunday(date))),
            Unit::Week => day(Some(sunday(date.with_month(1).unwrap_or(date)))),
            Unit::Day | Unit::Month | Unit::Year => day(date.with_ordinal(1)),
        };
        self.instant(start).min(millis)
    }

    fn offset(&self, millis: i64) -> i64 {
        let at = DateTime::from_timestamp_millis(millis).unwrap_or_default().naive_utc();
        i64::from(self.zone.offset_from_utc_datetime(&at).fix().local_minus_utc()) * 1000
    }

    fn local(&self, millis: i64) -> NaiveDateTime {
        let at = DateTime::from_timestamp_millis(millis).unwrap_or_default();
        at.with_timezone(&self.zone).naive_local()
    }

    /// The instant of a local time; the later one if there are two, and as late as without the change if clocks skip it.
    fn instant(&self, local: NaiveDateTime) -> i64 {
        let seconds = local_offsets(&self.zone, local).map_or(0, |offsets| offsets.last());
        local.and_utc().timestamp_millis() - i64::from(seconds) * 1000
    }
}

fn sunday(date: chrono::NaiveDate) -> chrono::NaiveDate {
    let days = Days::new(u64::from(date.weekday().num_days_from_sunday()));
    date.checked_sub_days(days).unwrap_or(date)
}

fn second(time: NaiveTime) -> NaiveTime {
    time.with_nanosecond(0).unwrap_or(time)
}

fn minute(time: NaiveTime) -> NaiveTime {
    second(time).with_second(0).unwrap_or(time)
}

fn hour(time: NaiveTime) -> NaiveTime {
    minute(time).with_minute(0).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(interval: &str, zone: Tz) -> Calendar {
        Calendar { interval: Interval::parse(interval).unwrap(), zone }
    }

    fn millis(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis()
    }

    #[test]
    fn an_interval_begins_where_the_zone_says() {
        let at = millis("2024-05-15T13:47:12.345Z");
        for (interval, zone, start) in [
            ("1d", Tz::UTC, "2024-05-15T00:00:00Z"),
            ("1d", Tz::Asia__Shanghai, "2024-05-14T16:00:00Z"),
            ("1n", Tz::America__New_York, "2024-05-01T04:00:00Z"),
            ("1y", Tz::America__New_York, "2024-01-01T05:00:00Z"),
            ("1w", Tz::UTC, "2024-05-12T00:00:00Z"),
            ("6h", Tz::Asia__Kolkata, "2024-05-15T12:30:00Z"),
            ("15m", Tz::UTC, "2024-05-15T13:45:00Z"),
            ("7m", Tz::UTC, "2024-05-15T13:46:00Z"),
            ("100ms", Tz::UTC, "2024-05-15T13:47:12.3Z"),
        ] {
            let calendar = calendar(interval, zone);
            assert_eq!(calendar.start_of(at), millis(start), "{interval}");
            assert_eq!(calendar.start_of(millis(start)), millis(start), "{interval} begins at its start");
        }
    }

    #[test]
    fn a_day_with_a_change_of_the_clock_is_an_hour_shorter_or_longer() {
        let days = calendar("1d", Tz::Europe__Berlin);
        assert_eq!(days.step(millis("2024-03-30T23:00:00Z"), true), millis("2024-03-31T22:00:00Z"));
        assert_eq!(days.step(millis("2024-10-26T22:00:00Z"), true), millis("2024-10-27T23:00:00Z"));
        assert_eq!(days.step(millis("2024-10-27T23:00:00Z"), false), millis("2024-10-26T22:00:00Z"));
    }

    #[test]
    fn a_day_that_clocks_skip_has_the_offset_before_it() {
        // 30 December 2011 does not exist in Samoa, where it was UTC-10 before.
        let months = calendar("1n", Tz::Pacific__Apia);
        assert_eq!(months.step(millis("2011-11-30T12:00:00Z"), true), millis("2011-12-30T12:00:00Z"));
    }
}
