//! Days of the calendar.

use std::fmt;

use crate::Timestamp;

const DAY_US: i64 = 86_400_000_000;
/// Days from 0000-03-01 to 1970-01-01.
const MARCH_0_DAYS: i64 = 719_468;
/// The calendar repeats after 400 years.
const ERA_YEARS: i64 = 400;
const ERA_DAYS: i64 = 146_097;

/// A day of the proleptic Gregorian calendar. Its text is `2000-02-29`; years after 9999 have more digits, years before 0000 a
/// minus sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// The year; 0 is the year before 1.
    pub year: i32,
    /// The month, 1 to 12.
    pub month: u8,
    /// The day of the month, 1 to 31.
    pub day: u8,
}

impl Timestamp {
    /// The day of a time, in UTC.
    ///
    /// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`: in a year that begins in March
    /// the leap day is the last day, and a linear function gives the month.
    pub const fn date(self) -> Date {
        let days = self.micros().div_euclid(DAY_US) + MARCH_0_DAYS;
        let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * ERA_YEARS + (month <= 2) as i64;
        // Every timestamp is within 300,000 years of 1970.
        Date { year: year as i32, month: month as u8, day: day as u8 }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day } = self;
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike as _, NaiveDate};
    use proptest::prelude::*;

    use super::*;

    /// Days from 0001-01-01 to 1970-01-01.
    const YEAR_1_DAYS: i64 = 719_162;

    fn date(days: i64) -> Date {
        Timestamp::from_micros(days * DAY_US).date()
    }

    fn text(days: i64) -> String {
        date(days).to_string()
    }

    #[test]
    fn the_ends_of_days_months_years_and_time_are_right() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (59, "1970-03-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
            (-MARCH_0_DAYS - 1, "0000-02-29"),
            (-MARCH_0_DAYS - 61, "-001-12-31"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "10000-01-01"),
        ] {
            assert_eq!(text(days), expected);
        }
        assert_eq!(Timestamp::from_micros(-1).date(), date(-1));
        assert_eq!(Timestamp::from_micros(DAY_US - 1).date(), date(0));
        assert_eq!(Timestamp::MIN.date(), Date { year: -290_308, month: 12, day: 21 });
        assert_eq!(Timestamp::MAX.date(), Date { year: 294_247, month: 1, day: 10 });
    }

    #[test]
    fn every_day_of_an_era_follows_the_day_before() {
        for days in -1_000..ERA_DAYS + 1_000 {
            let (before, after) = (date(days - 1), date(days));
            let is_leap = before.year % 4 == 0 && (before.year % 100 != 0 || before.year % 400 == 0);
            let february = 28 + u8::from(is_leap);
            let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let expected = match (before.month, before.day) {
                (12, 31) => Date { year: before.year + 1, month: 1, day: 1 },
                (month, day) if day == lengths[usize::from(month) - 1] => {
                    Date { month: month + 1, day: 1, ..before }
                }
                (_, day) => Date { day: day + 1, ..before },
            };
            assert_eq!(after, expected, "after {before}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

        #[test]
        fn every_day_equals_that_of_the_library(micros: i64) {
            let days = micros.div_euclid(DAY_US);
            let found = Timestamp::from_micros(micros).date();
            match NaiveDate::from_num_days_from_ce_opt((days + YEAR_1_DAYS + 1) as i32) {
                Some(expected) => prop_assert_eq!(
                    (found.year, u32::from(found.month), u32::from(found.day)),
                    (expected.year(), expected.month(), expected.day())
                ),
                None => prop_assert!(found.year.abs() > 262_000, "the library ends before {}", found),
            }
        }
    }
}
