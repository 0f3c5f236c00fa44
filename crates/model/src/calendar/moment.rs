//! Times of the calendar.

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Utc};

use crate::Date;

/// Seconds of the first and of the last moment since 1970: the years -9999 to 9999 with room for every offset from UTC.
const SECONDS: std::ops::RangeInclusive<i64> = -377_705_023_201..=253_402_207_200;
/// The largest offset from UTC: 25:59:59.
const OFFSET_MAX_S: i32 = 93_599;
const SECOND_NS: i128 = 1_000_000_000;

/// A time between the years -9999 and 9999 in UTC, in nanoseconds. Its text is RFC 3339 with the decimal places that it has; a year
/// before 0 has a sign and six digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(DateTime<Utc>);

impl Moment {
    /// From microseconds since 1970; `None` outside of the calendar.
    pub fn from_micros(micros: i64) -> Option<Self> {
        DateTime::from_timestamp_micros(micros).and_then(Self::within)
    }

    /// From milliseconds since 1970; `None` outside of the calendar.
    pub fn from_millis(millis: i64) -> Option<Self> {
        DateTime::from_timestamp_millis(millis).and_then(Self::within)
    }

    /// From seconds since 1970; `None` outside of the calendar.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        DateTime::from_timestamp(seconds, 0).and_then(Self::within)
    }

    /// The moment of a local time at an offset in seconds east of UTC; `None` outside of the calendar.
    pub fn of_local(local: NaiveDateTime, offset_s: i32) -> Option<Self> {
        let utc = local.and_utc();
        let seconds = utc.timestamp().checked_sub(offset_s.into())?;
        let has_offset = offset_s.abs() <= OFFSET_MAX_S;
        DateTime::from_timestamp(seconds, utc.timestamp_subsec_nanos())
            .filter(|_| has_offset)
            .and_then(Self::within)
    }

    /// The moment of a date and a time of day in UTC; `None` if there is no such time.
    pub fn of_date(date: Date, [hour, minute, second]: [u8; 3]) -> Option<Self> {
        let date = NaiveDate::from_ymd_opt(date.year, date.month.into(), date.day.into())?;
        Self::of_local(date.and_hms_opt(hour.into(), minute.into(), second.into())?, 0)
    }

    fn within(time: DateTime<Utc>) -> Option<Self> {
        SECONDS.contains(&time.timestamp()).then_some(Self(time))
    }

    /// Nanoseconds since 1970.
    pub fn nanos(self) -> i128 {
        i128::from(self.0.timestamp()) * SECOND_NS + i128::from(self.0.timestamp_subsec_nanos())
    }

    /// Microseconds since 1970, rounded towards 1970.
    pub fn micros(self) -> i64 {
        // Every year of the calendar fits.
        (self.nanos() / 1_000) as i64
    }

    /// Milliseconds since 1970, rounded towards 1970.
    pub fn millis(self) -> i64 {
        (self.nanos() / 1_000_000) as i64
    }

    /// The text in whole seconds, such as `2024-05-01T08:00:00Z`.
    pub fn to_seconds_text(self) -> String {
        format!("{:04}{}Z", self.0.year(), self.0.format("-%m-%dT%H:%M:%S"))
    }

    /// The text with six decimal places.
    pub fn to_micros_text(self) -> String {
        format!("{}{}Z", self.year_text(), self.0.format("-%m-%dT%H:%M:%S%.6f"))
    }

    fn year_text(self) -> String {
        match self.0.year() {
            year @ 0.. => format!("{year:04}"),
            year => format!("-{:06}", year.unsigned_abs()),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.year_text(), self.0.format("-%m-%dT%H:%M:%S"))?;
        match self.0.timestamp_subsec_nanos() {
            0 => f.write_str("Z"),
            nanos => write!(f, ".{}Z", format!("{nanos:09}").trim_end_matches('0')),
        }
    }
}

/// A time with its decimal places, from microseconds since 1970. A number outside of the calendar has its unit: `-5 us`.
pub fn exact_of_micros(micros: i64) -> String {
    Moment::from_micros(micros).map_or_else(|| format!("{micros} us"), |moment| moment.to_string())
}

/// As [`exact_of_micros`], in whole seconds.
pub fn seconds_of_micros(micros: i64) -> String {
    Moment::from_micros(micros).map_or_else(|| format!("{micros} us"), Moment::to_seconds_text)
}

/// As [`seconds_of_micros`], from milliseconds since 1970.
pub fn seconds_of_millis(millis: i64) -> String {
    Moment::from_millis(millis).map_or_else(|| format!("{millis} ms"), Moment::to_seconds_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_decimal_places_that_they_have_or_should_have() {
        assert_eq!(exact_of_micros(1_700_000_000_250_000), "2023-11-14T22:13:20.25Z");
        assert_eq!(exact_of_micros(0), "1970-01-01T00:00:00Z");
        assert_eq!(exact_of_micros(i64::MIN), format!("{} us", i64::MIN));
        assert_eq!(seconds_of_millis(1_700_000_000_999), "2023-11-14T22:13:20Z");
        assert_eq!(seconds_of_micros(1_700_000_000_999_999), "2023-11-14T22:13:20Z");
        assert_eq!(seconds_of_millis(i64::MAX), format!("{} ms", i64::MAX));
        assert_eq!(Moment::from_micros(1).unwrap().to_micros_text(), "1970-01-01T00:00:00.000001Z");
    }

    #[test]
    fn the_calendar_has_a_first_and_a_last_moment() {
        for (seconds, text, whole) in [
            (-377_705_023_201, "-009999-01-02T01:59:59Z", "-9999-01-02T01:59:59Z"),
            (-62_167_219_201, "-000001-12-31T23:59:59Z", "-001-12-31T23:59:59Z"),
            (-62_167_219_200, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
            (253_402_207_200, "9999-12-30T22:00:00Z", "9999-12-30T22:00:00Z"),
        ] {
            let moment = Moment::from_seconds(seconds).unwrap();
            assert_eq!((moment.to_string(), moment.to_seconds_text()), (text.to_owned(), whole.to_owned()));
            assert_eq!(moment.nanos(), i128::from(seconds) * SECOND_NS);
        }
        assert_eq!(Moment::from_seconds(-377_705_023_202), None);
        assert_eq!(Moment::from_micros(-377_705_023_201_000_001), None);
        assert_eq!(Moment::from_seconds(253_402_207_201), None);
        assert!(Moment::from_micros(253_402_207_200_999_999).is_some());
    }

    #[test]
    fn whole_units_round_towards_1970() {
        let before: Moment = "1969-12-31T23:59:59.9999985Z".parse().unwrap();
        assert_eq!((before.nanos(), before.micros(), before.millis()), (-1_500, -1, 0));
    }
}
