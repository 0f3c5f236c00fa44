//! Times of the calendar.

use std::fmt;
use std::str::FromStr;

use chrono::NaiveDateTime;
use jiff::civil::DateTime;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::{Offset, TimeZone};

use crate::Date;

const SIX_PLACES: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// A time between the years -9999 and 9999 in UTC, in nanoseconds. Its text is RFC 3339 with the decimal places that it has; a year
/// before 0 has a sign and six digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub(super) jiff::Timestamp);

/// The text is not a time with an offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a time such as 2024-05-01T08:00:00Z")]
pub struct NotATime;

impl Moment {
    /// From microseconds since 1970; `None` outside of the calendar.
    pub fn from_micros(micros: i64) -> Option<Self> {
        Self::of_units(micros, 1_000_000)
    }

    /// From milliseconds since 1970; `None` outside of the calendar.
    pub fn from_millis(millis: i64) -> Option<Self> {
        Self::of_units(millis, 1_000)
    }

    /// From seconds since 1970; `None` outside of the calendar.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        Self::of_units(seconds, 1)
    }

    /// jiff's constructors for milliseconds and microseconds refuse the fractions of the last second.
    fn of_units(number: i64, per_second: i64) -> Option<Self> {
        let nanos = number.rem_euclid(per_second) * (1_000_000_000 / per_second);
        jiff::Timestamp::new(number.div_euclid(per_second), nanos as i32).ok().map(Self)
    }

    /// The moment of a local time at an offset in seconds east of UTC; `None` outside of the calendar.
    pub fn of_local(local: NaiveDateTime, offset_s: i32) -> Option<Self> {
        Offset::from_seconds(offset_s).ok()?;
        let utc = local.and_utc();
        let nanos = i32::try_from(utc.timestamp_subsec_nanos()).ok()?;
        jiff::Timestamp::new(utc.timestamp() - i64::from(offset_s), nanos).ok().map(Self)
    }

    /// The moment of a date and a time of day in UTC; `None` if there is no such time.
    pub fn of_date(date: Date, [hour, minute, second]: [u8; 3]) -> Option<Self> {
        let small = |part: u8| i8::try_from(part).ok();
        let (year, month, day) = (date.year.try_into().ok()?, small(date.month)?, small(date.day)?);
        let time = DateTime::new(year, month, day, small(hour)?, small(minute)?, small(second)?, 0).ok()?;
        TimeZone::UTC.to_timestamp(time).ok().map(Self)
    }

    /// Nanoseconds since 1970.
    pub fn nanos(self) -> i128 {
        self.0.as_nanosecond()
    }

    /// Microseconds since 1970, rounded towards 1970.
    pub fn micros(self) -> i64 {
        self.0.as_microsecond()
    }

    /// Milliseconds since 1970, rounded towards 1970.
    pub fn millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// The text in whole seconds, such as `2024-05-01T08:00:00Z`.
    pub fn to_seconds_text(self) -> String {
        self.0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The text with six decimal places.
    pub fn to_micros_text(self) -> String {
        SIX_PLACES.timestamp_to_string(&self.0)
    }
}

impl FromStr for Moment {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        text.parse().map(Self).map_err(|_| NotATime)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
            assert_eq!(moment.nanos(), i128::from(seconds) * 1_000_000_000);
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
