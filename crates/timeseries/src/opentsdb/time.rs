//! Times as texts.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeZone};
use chrono_tz::Tz;

use super::{QueryError, duration_millis};

/// The instant that a text names, in milliseconds since 1970: seconds (up to 10 digits, with up to three decimals), milliseconds,
/// `now`, `1h-ago`, `yyyy/MM/dd`, `yyyy/MM/dd-HH:mm` or `yyyy/MM/dd-HH:mm:ss` (also with a blank) in the time zone.
///
/// # Errors
/// [`QueryError::Invalid`]: the text names no instant.
pub fn instant_millis(text: &str, zone: Tz, now_millis: i64) -> Result<i64, QueryError> {
    let lower = text.to_ascii_lowercase();
    if lower == "now" {
        return Ok(now_millis);
    }
    if let Some(ago) = lower.strip_suffix("-ago") {
        return Ok(now_millis - duration_millis(ago)?);
    }
    if text.contains(['/', ':']) {
        return date(text, zone);
    }
    if let Some(millis) = lower.strip_suffix("ms") {
        return digits(millis).ok_or_else(|| invalid(text, "it is not a number of milliseconds"));
    }
    if text.starts_with('-') {
        return Err(invalid(text, "Negative timestamps are not supported."));
    }
    if let Some((seconds, decimals)) = text.split_once('.') {
        let fits = seconds.len() == 10 && (1..=3).contains(&decimals.len());
        let parts = digits(seconds).zip(digits(&format!("{decimals:0<3}"))).filter(|_| fits);
        let problem = "Millisecond timestamps must be in the format <seconds>.<ms> where the milliseconds are \
                       limited to 3 digits";
        return parts.map(|(seconds, millis)| seconds * 1000 + millis).ok_or_else(|| invalid(text, problem));
    }
    let number = digits(text).ok_or_else(|| invalid(text, "it is not a number"))?;
    Ok(if text.len() <= 10 { number * 1000 } else { number })
}

/// The time zone of this name.
///
/// # Errors
/// [`QueryError::Invalid`]: there is no such time zone.
pub fn zone(name: &str) -> Result<Tz, QueryError> {
    name.parse().map_err(|_| QueryError::Invalid(format!("Invalid timezone name: {name}")))
}

fn digits(text: &str) -> Option<i64> {
    let only_digits = !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| only_digits)
}

fn invalid(text: &str, problem: &str) -> QueryError {
    QueryError::Invalid(format!("Invalid time: {text}. {problem}"))
}

fn date(text: &str, zone: Tz) -> Result<i64, QueryError> {
    let plain = text.replacen('-', " ", 1);
    let local = match plain.len() {
        10 => NaiveDate::parse_from_str(&plain, "%Y/%m/%d").map(|date| date.and_time(NaiveTime::MIN)),
        16 => NaiveDateTime::parse_from_str(&plain, "%Y/%m/%d %H:%M"),
        19 => NaiveDateTime::parse_from_str(&plain, "%Y/%m/%d %H:%M:%S"),
        _ => return Err(QueryError::Invalid(format!("Invalid absolute date: {text}"))),
    };
    let local = local.map_err(|error| QueryError::Invalid(format!("Invalid date: {text}. {error}")))?;
    let instant = zone.from_local_datetime(&local).latest();
    let instant = instant.ok_or_else(|| invalid(text, "The clock of the time zone skips it."))?;
    match instant.timestamp_millis() {
        millis if millis < 0 => Err(invalid(text, "Negative timestamps are not supported.")),
        millis => Ok(millis),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_a_date_or_relative_to_now() {
        let at = |text| instant_millis(text, Tz::Asia__Shanghai, 10_000_000_000_000).ok();
        assert_eq!(at("1356998400"), Some(1_356_998_400_000));
        assert_eq!(at("1356998400123"), Some(1_356_998_400_123));
        assert_eq!(at("1356998400.5"), Some(1_356_998_400_500));
        assert_eq!(at("1500ms"), Some(1500));
        assert_eq!(at("1h-ago"), Some(9_999_996_400_000));
        assert_eq!(at("NOW"), Some(10_000_000_000_000));
        assert_eq!(at("2013/01/01-08:00:00"), Some(1_356_998_400_000));
        assert_eq!(at("2013/01/01 08:00"), Some(1_356_998_400_000));
        assert_eq!(at("2013/01/01"), Some(1_356_969_600_000));
        for wrong in
            ["", "-5", "1.5", "x", "h-ago", "2013/13/01", "2013/01/01-25:00:00", "1e9", "12345678901234567"]
        {
            assert_eq!(at(wrong), None, "{wrong}");
        }
        assert!(zone("Mars/Olympus").is_err());
    }
}
