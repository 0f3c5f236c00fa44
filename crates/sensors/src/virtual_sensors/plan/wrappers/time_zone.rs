//! The zone of times that say none.

use chrono::{FixedOffset, MappedLocalTime, NaiveDateTime, TimeZone as _};
use chrono_tz::Tz;

/// A zone by its name, such as `Europe/Zurich`, or by its offset, such as `+01:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeZone {
    /// A zone of the time zone database.
    Named(Tz),
    /// A constant offset.
    Fixed(FixedOffset),
}

impl TimeZone {
    /// Universal time.
    pub const UTC: Self = Self::Named(Tz::UTC);

    /// The zone that a text names.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let named = text.parse().ok().map(Self::Named);
        named.or_else(|| offset(text).map(Self::Fixed))
    }

    /// The milliseconds since 1970 of a local time: the earlier one if it comes twice, `None` if a change of the clock leaves it out.
    pub fn millis(self, local: NaiveDateTime) -> Option<i64> {
        fn earliest<Z: chrono::TimeZone>(mapped: MappedLocalTime<chrono::DateTime<Z>>) -> Option<i64> {
            mapped.earliest().map(|time| time.timestamp_millis())
        }
        match self {
            Self::Named(zone) => earliest(zone.from_local_datetime(&local)),
            Self::Fixed(offset) => earliest(offset.from_local_datetime(&local)),
        }
    }
}

/// `Z`, `+01:00`, `+0100` or `+01`.
pub(super) fn offset(text: &str) -> Option<FixedOffset> {
    if text == "Z" {
        return FixedOffset::east_opt(0);
    }
    let (sign, rest) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(rest), _) => (1, rest),
        (None, rest) => (-1, rest?),
    };
    let digits: String = rest.chars().filter(|c| *c != ':').collect();
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let hours: i32 = digits[..2].parse().ok()?;
    let minutes: i32 =
        digits.get(2..).filter(|rest| !rest.is_empty()).map_or(Some(0), |rest| rest.parse().ok())?;
    (minutes < 60).then(|| FixedOffset::east_opt(sign * (hours * 3_600 + minutes * 60)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_time_has_one_instant() {
        let local = |text: &str| text.parse::<NaiveDateTime>().expect("a local time");
        let zurich = TimeZone::parse("Europe/Zurich").expect("a zone");
        assert_eq!(TimeZone::UTC.millis(local("2026-03-29T02:30:00")), Some(1_774_751_400_000));
        assert_eq!(zurich.millis(local("2026-03-29T02:30:00")), None, "the clock leaves it out");
        let twice = zurich.millis(local("2026-10-25T02:30:00"));
        assert_eq!(twice, TimeZone::UTC.millis(local("2026-10-25T00:30:00")), "the earlier one");
        let east = TimeZone::parse("+01:00").expect("an offset");
        assert_eq!(east.millis(local("1970-01-01T01:00:00")), Some(0));
        assert_eq!(
            TimeZone::parse("-0130").and_then(|zone| zone.millis(local("1970-01-01T00:00:00"))),
            Some(5_400_000)
        );
        for bad in ["", "Zurich", "+1", "+01:60", "01:00"] {
            assert_eq!(TimeZone::parse(bad), None, "{bad}");
        }
    }
}
