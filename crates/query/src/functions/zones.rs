//! Time zones: the local time of a time, and back.
//!
//! As in PostgreSQL, abbreviations come first. They stand for an offset without daylight saving time, so `CET` is UTC+1 in summer
//! too. Then come names such as `Europe/Berlin`, then POSIX offsets, which count west of Greenwich: `UTC+2` and `+02` are two hours
//! behind UTC.

use arrow_array::timezone::Tz;
use chrono::{DateTime, NaiveDateTime, Offset, TimeZone};
use model::calendar::local_offsets;

use super::by_value::time_out_of_range;
use crate::QueryError;
use crate::error::INVALID_PARAMETER;
use model::Interval;

const HOUR_S: i64 = 3_600;
/// Common abbreviations of PostgreSQL's default list, with seconds east of UTC.
const ABBREVIATIONS: [(&str, i64); 40] = [
    ("acst", 34_200),
    ("adt", -3 * HOUR_S),
    ("aedt", 11 * HOUR_S),
    ("aest", 10 * HOUR_S),
    ("akdt", -8 * HOUR_S),
    ("akst", -9 * HOUR_S),
    ("ast", -4 * HOUR_S),
    ("awst", 8 * HOUR_S),
    ("bst", HOUR_S),
    ("cdt", -5 * HOUR_S),
    ("cest", 2 * HOUR_S),
    ("cet", HOUR_S),
    ("cst", -6 * HOUR_S),
    ("eat", 3 * HOUR_S),
    ("edt", -4 * HOUR_S),
    ("eest", 3 * HOUR_S),
    ("eet", 2 * HOUR_S),
    ("est", -5 * HOUR_S),
    ("gmt", 0),
    ("hkt", 8 * HOUR_S),
    ("hst", -10 * HOUR_S),
    ("idt", 3 * HOUR_S),
    ("ist", 2 * HOUR_S),
    ("jst", 9 * HOUR_S),
    ("kst", 9 * HOUR_S),
    ("mdt", -6 * HOUR_S),
    ("mest", 2 * HOUR_S),
    ("met", HOUR_S),
    ("mez", HOUR_S),
    ("mst", -7 * HOUR_S),
    ("nzdt", 13 * HOUR_S),
    ("nzst", 12 * HOUR_S),
    ("pdt", -7 * HOUR_S),
    ("pst", -8 * HOUR_S),
    ("sast", 2 * HOUR_S),
    ("uct", 0),
    ("ut", 0),
    ("utc", 0),
    ("wet", 0),
    ("z", 0),
];

/// A time zone.
#[derive(Debug, Clone, Copy)]
pub(super) enum Zone {
    /// Seconds east of UTC.
    Fixed(i64),
    Named(Tz),
}

impl Zone {
    pub(super) fn of_name(name: &str) -> Result<Self, QueryError> {
        let lower = name.trim().to_ascii_lowercase();
        if let Some((_, offset)) = ABBREVIATIONS.iter().find(|(abbreviation, _)| *abbreviation == lower) {
            return Ok(Self::Fixed(*offset));
        }
        let letters = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if letters && let Ok(zone) = name.trim().parse::<Tz>() {
            return Ok(Self::Named(zone));
        }
        let digits = lower.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        posix_offset(digits).map(Self::Fixed).ok_or_else(|| {
            QueryError::value(INVALID_PARAMETER, format!("time zone \"{name}\" not recognized"))
        })
    }

    /// Returns an interval as an offset east of UTC.
    pub(super) fn of_interval(interval: Interval) -> Result<Self, QueryError> {
        if interval.months != 0 || interval.days != 0 {
            let message = format!("interval time zone \"{interval}\" must not include months or days");
            return Err(QueryError::value(INVALID_PARAMETER, message));
        }
        Ok(Self::Fixed(interval.micros / 1_000_000))
    }

    /// Returns the local time of a time.
    pub(super) fn local(self, micros_utc: i64) -> Result<i64, QueryError> {
        let offset = match self {
            Self::Fixed(offset) => offset,
            Self::Named(zone) => {
                let time = naive(micros_utc)?;
                zone.offset_from_utc_datetime(&time).fix().local_minus_utc().into()
            }
        };
        micros_utc.checked_add(offset * 1_000_000).ok_or_else(time_out_of_range)
    }

    /// Returns the time of a local time. A local time that clocks skip is read as if they had not been put forward. Of a local time
    /// that comes twice, the second counts.
    pub(super) fn utc(self, micros_local: i64) -> Result<i64, QueryError> {
        let offset = match self {
            Self::Fixed(offset) => offset,
            Self::Named(zone) => {
                let offsets = local_offsets(&zone, naive(micros_local)?).ok_or_else(time_out_of_range)?;
                offsets.last().into()
            }
        };
        micros_local.checked_sub(offset * 1_000_000).ok_or_else(time_out_of_range)
    }
}

fn naive(micros: i64) -> Result<NaiveDateTime, QueryError> {
    DateTime::from_timestamp_micros(micros).map(|time| time.naive_utc()).ok_or_else(time_out_of_range)
}

/// Reads `+2`, `-02:30` or `+02:30:15`, an offset that counts west, as seconds east of UTC.
fn posix_offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (-1, &text[1..]),
        b'-' => (1, &text[1..]),
        _ => (-1, text),
    };
    let mut seconds = 0;
    for (index, part) in digits.split(':').enumerate() {
        let is_number = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 = part.parse().ok().filter(|_| is_number)?;
        match index {
            0 if number <= 24 => seconds += number * HOUR_S,
            1 if number < 60 => seconds += number * 60,
            2 if number < 60 => seconds += number,
            _ => return None,
        }
    }
    Some(sign * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: i64 = HOUR_S * 1_000_000;
    /// 2026-03-29 01:00 UTC: clocks in Berlin go from two to three.
    const SPRING_US: i64 = 1_774_746_000_000_000;
    /// 2026-10-25 01:00 UTC: clocks in Berlin go from three to two.
    const AUTUMN_US: i64 = 1_792_890_000_000_000;

    #[test]
    fn clocks_are_put_forward_and_back() {
        let berlin = Zone::of_name("Europe/Berlin").unwrap();
        assert_eq!(berlin.local(SPRING_US - 1).unwrap(), SPRING_US - 1 + HOUR_US);
        assert_eq!(berlin.local(SPRING_US).unwrap(), SPRING_US + 2 * HOUR_US);
        // Half past two does not exist on that day. It is read as winter time.
        assert_eq!(berlin.utc(SPRING_US + HOUR_US * 3 / 2).unwrap(), SPRING_US + HOUR_US / 2);
        // Half past two comes twice. The second one counts.
        assert_eq!(berlin.utc(AUTUMN_US + HOUR_US * 3 / 2).unwrap(), AUTUMN_US + HOUR_US / 2);
    }

    #[test]
    fn names_are_abbreviations_then_zones_then_offsets() {
        let offset =
            |name: &str| Zone::of_name(name).unwrap().local(SPRING_US + 2_000 * HOUR_US).unwrap() - SPRING_US;
        let hours = |name: &str| offset(name) / HOUR_US - 2_000;
        assert_eq!(hours("CET"), 1);
        assert_eq!(hours("Europe/Berlin"), 2);
        assert_eq!(hours("+02"), -2);
        assert_eq!(hours("UTC+2"), -2);
        assert_eq!(hours("-03:00"), 3);
        assert_eq!(hours("utc"), 0);
        assert!(["Nowhere/X", "", "+99", "1:2:3:4"].iter().all(|name| Zone::of_name(name).is_err()));
    }
}
