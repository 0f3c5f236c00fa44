//! The time of a row: from a column, or from its number.

use std::str::FromStr;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

/// How the time is written in its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TimeFormat {
    /// RFC 3339, such as 2024-05-01T08:00:00Z; without an offset it is UTC.
    Rfc3339,
    /// A number since the beginning of 1970, UTC.
    Epoch(Unit),
    /// A pattern in the manner of strftime, such as `%d.%m.%Y %H:%M:%S`; without an offset it is UTC.
    Pattern(String),
}

/// Units of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
}

impl FromStr for TimeFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "rfc3339" => Self::Rfc3339,
            "s" => Self::Epoch(Unit::Seconds),
            "ms" => Self::Epoch(Unit::Milliseconds),
            "us" => Self::Epoch(Unit::Microseconds),
            pattern if pattern.contains('%') => Self::Pattern(pattern.into()),
            other => {
                return Err(format!(
                    "\"{other}\" is no format; use rfc3339, s, ms, us or a pattern such as \"%d.%m.%Y %H:%M:%S\""
                ));
            }
        })
    }
}

impl TimeFormat {
    /// Milliseconds since 1970 that a text means.
    pub(super) fn parse(&self, text: &str) -> Result<i64, String> {
        let text = text.trim();
        match self {
            Self::Rfc3339 => rfc3339(text),
            Self::Epoch(unit) => epoch(text, *unit),
            Self::Pattern(pattern) => with_pattern(text, pattern),
        }
    }
}

impl TimeFormat {
    /// Microseconds since 1970 that a text means.
    pub(crate) fn parse_us(&self, text: &str) -> Result<i64, String> {
        let exact = match self {
            Self::Rfc3339 => text.trim().parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond),
            Self::Epoch(Unit::Microseconds) => text.trim().parse().ok(),
            Self::Epoch(_) | Self::Pattern(_) => None,
        };
        match exact {
            Some(micros) => Ok(micros),
            None => Ok(self.parse(text)?.saturating_mul(1_000)),
        }
    }
}

fn rfc3339(text: &str) -> Result<i64, String> {
    let with_offset = text.parse::<jiff::Timestamp>();
    let time = with_offset.or_else(|_| text.parse::<DateTime>().and_then(in_utc));
    time.map(jiff::Timestamp::as_millisecond).map_err(|_| {
        format!("\"{text}\" is no time such as 2024-05-01T08:00:00Z; say with --ts-format how it is written (s, ms, us or a pattern)")
    })
}

fn epoch(text: &str, unit: Unit) -> Result<i64, String> {
    let wrong = || format!("\"{text}\" is no number that can be a time");
    if let (Ok(whole), Unit::Milliseconds | Unit::Microseconds) = (text.parse::<i64>(), unit) {
        return Ok(if unit == Unit::Milliseconds { whole } else { whole.div_euclid(1_000) });
    }
    let number: f64 = text.parse().map_err(|_| wrong())?;
    let ms = match unit {
        Unit::Seconds => number * 1_000.0,
        Unit::Milliseconds => number,
        Unit::Microseconds => number / 1_000.0,
    };
    // Far outside of what a calendar has; also what is no number.
    if ms.abs() < 1e15 { Ok(ms.round() as i64) } else { Err(wrong()) }
}

fn with_pattern(text: &str, pattern: &str) -> Result<i64, String> {
    let parsed = strtime::parse(pattern, text)
        .map_err(|error| format!("\"{text}\" does not fit \"{pattern}\": {error}"))?;
    let time = parsed.to_timestamp().or_else(|_| parsed.to_datetime().and_then(in_utc));
    time.map(jiff::Timestamp::as_millisecond).map_err(|error| format!("\"{text}\" is no time: {error}"))
}

fn in_utc(time: DateTime) -> Result<jiff::Timestamp, jiff::Error> {
    Ok(time.to_zoned(TimeZone::UTC)?.timestamp())
}

/// Times of rows that have none: one interval after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    /// Of the first row, in milliseconds since 1970.
    pub start_ms: i64,
    pub interval_ms: i64,
}

impl Clock {
    /// The time of row `index`.
    pub(super) fn at(&self, index: u64) -> i64 {
        self.start_ms + self.interval_ms * i64::try_from(index).expect("BUG: fewer rows than milliseconds")
    }
}

/// Reads `1s`, `100ms`, `1m30s`: at least a millisecond, and whole ones.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is no interval; write 1s, 100ms or 1m30s (at least 1ms)");
    let signed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    let duration = Duration::try_from(signed).map_err(|_| wrong())?;
    let is_whole = duration.subsec_nanos().is_multiple_of(1_000_000);
    if duration.is_zero() || !is_whole || duration > Duration::from_secs(366 * 86_400) {
        Err(wrong())
    } else {
        Ok(duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAY_1ST: i64 = 1_714_550_400_000;

    fn ms(format: &str, text: &str) -> Result<i64, String> {
        format.parse::<TimeFormat>().unwrap().parse(text)
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        for (format, text) in [
            ("rfc3339", "2024-05-01T08:00:00Z"),
            ("rfc3339", "2024-05-01 10:00:00+02:00"),
            ("rfc3339", "2024-05-01T08:00:00"),
            ("s", "1714550400"),
            ("s", " 1714550400.000"),
            ("ms", "1714550400000"),
            ("us", "1714550400000999"),
            ("%d.%m.%Y %H:%M:%S", "01.05.2024 08:00:00"),
            ("%Y-%m-%d %H:%M %z", "2024-05-01 10:00 +0200"),
        ] {
            assert_eq!(ms(format, text), Ok(MAY_1ST), "{format}: {text}");
        }
        assert_eq!(ms("s", "1714550400.25"), Ok(MAY_1ST + 250));
    }

    #[test]
    fn what_is_no_time_is_an_error_that_quotes_it() {
        for (format, text) in
            [("rfc3339", "1714550400"), ("s", "noon"), ("s", "nan"), ("ms", "1e30"), ("%Y", "x")]
        {
            assert!(ms(format, text).unwrap_err().contains(text), "{format}: {text}");
        }
        assert!("iso".parse::<TimeFormat>().unwrap_err().contains("rfc3339, s, ms, us"));
    }

    #[test]
    fn rows_without_a_time_follow_each_other() {
        let clock = Clock { start_ms: MAY_1ST, interval_ms: 100 };
        assert_eq!([clock.at(0), clock.at(1), clock.at(600)], [MAY_1ST, MAY_1ST + 100, MAY_1ST + 60_000]);
    }

    #[test]
    fn intervals_are_whole_milliseconds() {
        assert_eq!(parse_interval("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(parse_interval("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_interval("1m30s"), Ok(Duration::from_secs(90)));
        for text in ["0s", "-1s", "1us", "1500us", "soon", "500h 400000h"] {
            assert!(parse_interval(text).unwrap_err().contains(text), "{text}");
        }
    }
}
