//! Lengths of time as texts: a number and a unit.

use super::QueryError;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    /// The length, in milliseconds; that of a month is 30 days, that of a year 365.
    fn millis(self) -> i64 {
        const DAY: i64 = 86_400_000;
        match self {
            Self::Millisecond => 1,
            Self::Second => 1_000,
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 30 * DAY,
            Self::Year => 365 * DAY,
        }
    }
}

/// A length of time: a count of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) count: u32,
    pub(super) unit: Unit,
}

impl Interval {
    /// Reads a length such as `500ms`, `1m` or `2n` (months).
    pub(super) fn parse(text: &str) -> Result<Self, QueryError> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let unit = match unit.to_ascii_lowercase().as_str() {
            "ms" => Unit::Millisecond,
            "s" => Unit::Second,
            "m" => Unit::Minute,
            "h" => Unit::Hour,
            "d" => Unit::Day,
            "w" => Unit::Week,
            "n" => Unit::Month,
            "y" => Unit::Year,
            "" => {
                let problem = format!("Invalid duration, must have an integer and unit: {text}");
                return Err(QueryError::Invalid(problem));
            }
            _ => return Err(QueryError::Invalid(format!("Invalid duration (suffix): {text}"))),
        };
        let count: u32 =
            number.parse().map_err(|_| QueryError::Invalid(format!("Invalid duration (number): {text}")))?;
        if count == 0 {
            return Err(QueryError::Invalid(format!("Zero or negative duration: {text}")));
        }
        Ok(Self { count, unit })
    }

    /// The length, in milliseconds.
    pub(super) fn millis(self) -> i64 {
        i64::from(self.count) * self.unit.millis()
    }
}

/// The length of a duration such as `500ms`, `1m` or `2n` (months of 30 days), in milliseconds.
///
/// # Errors
/// [`QueryError::Invalid`]: the text is not a duration, or it is zero.
pub fn duration_millis(text: &str) -> Result<i64, QueryError> {
    Interval::parse(text).map(Interval::millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_positive_number_and_a_unit() {
        assert_eq!(duration_millis("500ms").unwrap(), 500);
        assert_eq!(duration_millis("2N").unwrap(), 60 * 86_400_000);
        for wrong in ["", "5", "m", "0s", "-1m", "1x", "1.5h", "99999999999s"] {
            assert!(duration_millis(wrong).is_err(), "{wrong}");
        }
    }
}
