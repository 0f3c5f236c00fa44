//! Intervals like those of PostgreSQL: months, days and microseconds, which are not converted into each other.

use std::fmt;

/// Microseconds of an hour.
pub const HOUR_US: i64 = 3_600_000_000;
/// Microseconds of a day.
pub const DAY_US: i64 = 24 * HOUR_US;
/// Days of a month, for conversions.
const MONTH_DAYS: i64 = 30;

/// An interval. Its fields may have different signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// Months; a year is twelve of them.
    pub months: i32,
    /// Days of any length.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl Interval {
    /// The interval between two times: whole days of 24 hours, and the rest.
    pub fn of_difference(micros: i64) -> Self {
        // The days of any number of microseconds fit.
        Self { months: 0, days: (micros / DAY_US) as i32, micros: micros % DAY_US }
    }

    /// The length in microseconds, with months of 30 days and days of 24 hours.
    pub fn length_us(self) -> i128 {
        let days = i128::from(self.months) * i128::from(MONTH_DAYS) + i128::from(self.days);
        days * i128::from(DAY_US) + i128::from(self.micros)
    }

    /// `justify_hours`: 24 hours become a day. `None` if the days overflow.
    pub fn justify_hours(mut self) -> Option<Self> {
        self.days = self.days.checked_add((self.micros / DAY_US) as i32)?;
        self.micros %= DAY_US;
        if self.days > 0 && self.micros < 0 {
            self.days -= 1;
            self.micros += DAY_US;
        } else if self.days < 0 && self.micros > 0 {
            self.days += 1;
            self.micros -= DAY_US;
        }
        Some(self)
    }

    /// `justify_days`: 30 days become a month. `None` if the months overflow.
    pub fn justify_days(mut self) -> Option<Self> {
        let month = MONTH_DAYS as i32;
        self.months = self.months.checked_add(self.days / month)?;
        self.days %= month;
        if self.months > 0 && self.days < 0 {
            self.months -= 1;
            self.days += month;
        } else if self.months < 0 && self.days > 0 {
            self.months += 1;
            self.days -= month;
        }
        Some(self)
    }

    /// `justify_interval`: both, so that all fields have one sign. `None` if a field overflows.
    pub fn justify(mut self) -> Option<Self> {
        let month = MONTH_DAYS as i32;
        if (self.days > 0 && self.micros > 0) || (self.days < 0 && self.micros < 0) {
            self.months = self.months.checked_add(self.days / month)?;
            self.days %= month;
        }
        self.days = self.days.checked_add((self.micros / DAY_US) as i32)?;
        self.micros %= DAY_US;
        self.months = self.months.checked_add(self.days / month)?;
        self.days %= month;
        let (rest, days) = ((self.days, self.micros), self.days);
        if self.months > 0 && (rest.0 < 0 || (rest.0 == 0 && rest.1 < 0)) {
            self.months -= 1;
            self.days += month;
        } else if self.months < 0 && (days > 0 || (days == 0 && self.micros > 0)) {
            self.months += 1;
            self.days -= month;
        }
        if self.days > 0 && self.micros < 0 {
            self.days -= 1;
            self.micros += DAY_US;
        } else if self.days < 0 && self.micros > 0 {
            self.days += 1;
            self.micros -= DAY_US;
        }
        Some(self)
    }
}

/// The style `postgres`: `1 year 2 mons -3 days +04:05:06.7`.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")];
        let mut separator = "";
        let mut was_negative = false;
        for (count, unit) in parts.into_iter().filter(|(count, _)| *count != 0) {
            let sign = if was_negative && count > 0 { "+" } else { "" };
            let plural = if count == 1 { "" } else { "s" };
            write!(f, "{separator}{sign}{count} {unit}{plural}")?;
            (separator, was_negative) = (" ", count < 0);
        }
        if self.micros == 0 && !separator.is_empty() {
            return Ok(());
        }
        let sign = match (self.micros < 0, was_negative) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let micros = self.micros.unsigned_abs();
        let seconds = micros / 1_000_000;
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        write!(f, "{separator}{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60)?;
        let fraction = format!("{:06}", micros % 1_000_000);
        match fraction.trim_end_matches('0') {
            "" => Ok(()),
            fraction => write!(f, ".{fraction}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(months: i32, days: i32, micros: i64) -> Interval {
        Interval { months, days, micros }
    }

    /// The expected texts are from PostgreSQL 15: `SELECT make_interval(...)::text`.
    #[test]
    fn intervals_equal_those_of_postgresql() {
        for (interval, text) in [
            (of(0, 0, 0), "00:00:00"),
            (of(14, 3, 14_706_700_000), "1 year 2 mons 3 days 04:05:06.7"),
            (of(-1, 1, 0), "-1 mons +1 day"),
            (of(1, -1, 10 * HOUR_US), "1 mon -1 days +10:00:00"),
            (of(0, -1, 2 * HOUR_US), "-1 days +02:00:00"),
            (of(0, 0, -1_500_000), "-00:00:01.5"),
            (of(-13, 0, 0), "-1 years -1 mons"),
            (of(0, 0, 100 * HOUR_US), "100:00:00"),
        ] {
            assert_eq!(interval.to_string(), text);
        }
    }

    #[test]
    fn hours_and_days_become_days_and_months() {
        assert_eq!(of(0, 0, 27 * HOUR_US).justify_hours(), Some(of(0, 1, 3 * HOUR_US)));
        assert_eq!(of(0, 1, -HOUR_US).justify_hours(), Some(of(0, 0, 23 * HOUR_US)));
        assert_eq!(of(0, 35, 0).justify_days(), Some(of(1, 5, 0)));
        assert_eq!(of(1, -1, 0).justify_days(), Some(of(0, 29, 0)));
        assert_eq!(of(1, 0, -HOUR_US).justify(), Some(of(0, 29, 23 * HOUR_US)));
        assert_eq!(of(0, i32::MAX, 25 * HOUR_US).justify_hours(), None);
    }

    #[test]
    fn lengths_compare_as_postgresql_does() {
        assert!(of(0, 0, 25 * HOUR_US).length_us() > of(0, 1, 0).length_us());
        assert_eq!(of(1, 0, 0).length_us(), of(0, 30, 0).length_us());
        assert_eq!(Interval::of_difference(-25 * HOUR_US), of(0, -1, -HOUR_US));
    }
}
