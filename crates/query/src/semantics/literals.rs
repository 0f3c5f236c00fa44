//! Rewrites constant times and intervals from PostgreSQL's syntax to DataFusion's.
//!
//! DataFusion reads `2026-01-01T12:00:00Z`. PostgreSQL also reads a time without seconds, an offset of hours, and a blank before
//! the offset, and it ignores the offset where a time has no zone. DataFusion refuses a text that is not known here.

use model::Interval;

use crate::values::interval_text;

/// Returns a time as DataFusion reads it; `None` if the text needs no change.
pub(super) fn time(text: &str, has_zone: bool) -> Option<String> {
    let trimmed = text.trim();
    let date = trimmed.get(..10)?;
    let is_date = date.bytes().enumerate().all(|(index, byte)| match index {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let rest = trimmed.get(10..)?;
    let rest = rest.strip_prefix(['T', 't', ' ']).map(str::trim_start);
    let Some(rest) = rest.filter(|rest| is_date && !rest.is_empty()) else {
        return (is_date && text != trimmed).then(|| trimmed.to_owned());
    };
    let length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || b":.".contains(byte)).count();
    let (clock, zone) = rest.split_at(length);
    let clock = with_seconds(clock)?;
    let zone = offset(zone.trim())?;
    Some(if has_zone { format!("{date}T{clock}{zone}") } else { format!("{date}T{clock}") })
}

/// `HH:MM[:SS[.f]]` with all of its parts.
fn with_seconds(clock: &str) -> Option<String> {
    let parts: Vec<&str> = clock.split(':').collect();
    let is_pair =
        |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let [hour, minute, second @ ..] = parts.as_slice() else { return None };
    let second = match second {
        [] => "00",
        [second] => second,
        _ => return None,
    };
    let whole = second.split('.').next()?;
    if !is_pair(hour) || !is_pair(minute) || !is_pair(whole) {
        return None;
    }
    Some(format!("{hour:0>2}:{minute:0>2}:{}{second}", if whole.len() == 1 { "0" } else { "" }))
}

/// Returns `Z`, `UTC`, `+02`, `+0200` or `+02:00` as DataFusion reads it.
fn offset(zone: &str) -> Option<String> {
    if zone.is_empty() || ["z", "utc", "gmt"].contains(&zone.to_ascii_lowercase().as_str()) {
        return Some("Z".into());
    }
    let sign = zone.get(..1).filter(|sign| ["+", "-"].contains(sign))?;
    let digits = &zone[1..];
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "00"),
    };
    let is_number =
        |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(hours) && is_number(minutes)).then(|| format!("{sign}{hours:0>2}:{minutes:0>2}"))
}

/// Returns an interval as DataFusion reads it.
pub(super) fn interval(text: &str) -> Option<String> {
    let Interval { months, days, micros } = interval_text::read(text)?;
    Some(format!("{months} months {days} days {micros} microseconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_those_of_the_library() {
        for (text, with_zone, without) in [
            ("2026-01-01 12:00", Some("2026-01-01T12:00:00Z"), Some("2026-01-01T12:00:00")),
            ("2026-01-01 2:00:1.5 +02", Some("2026-01-01T02:00:01.5+02:00"), Some("2026-01-01T02:00:01.5")),
            ("2026-01-01T12:00:00-0130", Some("2026-01-01T12:00:00-01:30"), Some("2026-01-01T12:00:00")),
            (" 2026-01-01 ", Some("2026-01-01"), Some("2026-01-01")),
            ("2026-01-01", None, None),
            ("2026-01-01 12:00 Europe/Berlin", None, None),
            ("now", None, None),
        ] {
            assert_eq!(time(text, true).as_deref(), with_zone, "{text}");
            assert_eq!(time(text, false).as_deref(), without, "{text}");
        }
    }

    #[test]
    fn intervals_become_those_of_the_library() {
        assert_eq!(interval("1 day 2:03:04.5").as_deref(), Some("0 months 1 days 7384500000 microseconds"));
        assert_eq!(interval("1:x"), None);
    }
}
