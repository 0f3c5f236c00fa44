//! Times as queries write them and as answers show them.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;
use model::calendar::local_offsets;

const NANOS: i128 = 1_000_000_000;

/// Whether a text begins as a time does: with a date.
pub(super) fn looks_like(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// A time in nanoseconds: RFC 3339, a date with a time, or a date. Without a zone of its own it is in `zone`, otherwise in UTC.
///
/// # Errors
/// In the words of InfluxDB.
pub(super) fn parse(text: &str, zone: Option<Tz>) -> Result<i64, String> {
    i64::try_from(parse_wide(text, zone)?).map_err(|_| invalid())
}

/// As [`parse`], for times beyond the range of nanoseconds in 64 bits.
pub(super) fn parse_wide(text: &str, zone: Option<Tz>) -> Result<i128, String> {
    if !looks_like(text) {
        return Err(invalid());
    }
    if text.len() == 10 {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|_| invalid())?;
        return local(date.and_hms_opt(0, 0, 0).ok_or_else(invalid)?, zone);
    }
    if let Ok(time) = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f") {
        return local(time, zone);
    }
    match DateTime::parse_from_rfc3339(text) {
        Ok(time) if text.as_bytes()[10] == b'T' => {
            Ok(i128::from(time.timestamp()) * NANOS + i128::from(time.timestamp_subsec_nanos()))
        }
        _ => Err(invalid()),
    }
}

fn invalid() -> String {
    "invalid timestamp string".to_owned()
}

fn local(time: NaiveDateTime, zone: Option<Tz>) -> Result<i128, String> {
    let offset_s = match zone {
        None => 0,
        Some(zone) => local_offsets(&zone, time).ok_or_else(invalid)?.first(),
    };
    let seconds = i128::from(time.and_utc().timestamp()) - i128::from(offset_s);
    Ok(seconds * NANOS + i128::from(time.and_utc().timestamp_subsec_nanos()))
}

/// A time in RFC 3339, in a zone or in UTC, with as many digits after the point as it has.
pub fn rfc3339(nanos: i64, zone: Option<Tz>) -> String {
    let utc = DateTime::<Utc>::from_timestamp_nanos(nanos);
    let fraction = match nanos.rem_euclid(1_000_000_000) {
        0 => String::new(),
        part => format!(".{part:09}").trim_end_matches('0').to_owned(),
    };
    let (local, offset) = match zone {
        None => (utc.naive_utc(), 0),
        Some(zone) => {
            let local = utc.with_timezone(&zone);
            (local.naive_local(), local.offset().fix().local_minus_utc())
        }
    };
    let suffix = match offset {
        0 => "Z".to_owned(),
        _ => format!(
            "{}{:02}:{:02}",
            if offset < 0 { '-' } else { '+' },
            offset.abs() / 3600,
            offset.abs() / 60 % 60
        ),
    };
    format!("{}{fraction}{suffix}", local.format("%Y-%m-%dT%H:%M:%S"))
}

/// A time beyond the range of nanoseconds in 64 bits, to the second.
pub(super) fn rfc3339_wide(nanos: i128) -> String {
    let seconds = i64::try_from(nanos.div_euclid(NANOS)).unwrap_or_default();
    DateTime::<Utc>::from_timestamp(seconds, 0)
        .map(|time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}

/// The distance of a zone from UTC at a time, in nanoseconds.
pub(super) fn offset_at(zone: Tz, nanos: i64) -> i64 {
    let utc = DateTime::<Utc>::from_timestamp_nanos(nanos).naive_utc();
    i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc()) * 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_time_that_clocks_skip_has_the_offset_before_the_change() {
        for (zone, text, same) in [
            (Tz::Europe__Berlin, "2024-03-31 02:30:00", "2024-03-31T01:30:00Z"),
            // Two hours, and a whole day.
            (Tz::Antarctica__Troll, "2024-03-31 01:30:00", "2024-03-31T01:30:00Z"),
            (Tz::Pacific__Apia, "2011-12-30", "2011-12-30T10:00:00Z"),
        ] {
            assert_eq!(parse(text, Some(zone)), parse(same, None), "{text}");
        }
        assert_eq!(
            parse("2024-10-27 02:30:00", Some(Tz::Europe__Berlin)),
            parse("2024-10-27T00:30:00Z", None),
            "the first one of two"
        );
    }
}
