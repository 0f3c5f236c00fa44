//! Texts as local times, as times in the form of a pattern, and as durations.

use std::time::Duration;

use chrono::{NaiveDate, NaiveDateTime};
use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::fmt::strtime;

use super::moment::Moment;

/// What a text says in the form of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternTime {
    /// A time with an offset from UTC.
    Moment(Moment),
    /// A local time. Without a time of day it is midnight.
    Local(NaiveDateTime),
}

/// Reads a local time. Without a time of day it is midnight. `Z` is refused; a numeric offset has no effect.
pub fn parse_local(text: &str) -> Option<NaiveDateTime> {
    local(text.parse().ok()?)
}

/// Reads a time in the form of a pattern, in the manner of `strptime`.
///
/// # Errors
/// The pattern is wrong, the text does not fit it, or its parts are not a time.
pub fn parse_pattern(pattern: &str, text: &str) -> Result<PatternTime, String> {
    let reason = |error: jiff::Error| error.to_string();
    let parts = strtime::parse(pattern, text).map_err(reason)?;
    if parts.offset().is_some() || parts.timestamp().is_some() {
        return Ok(PatternTime::Moment(Moment(parts.to_timestamp().map_err(reason)?)));
    }
    let time = local(parts.to_datetime().map_err(reason)?);
    time.map(PatternTime::Local).ok_or_else(|| "there is no such time".to_owned())
}

/// Reads a duration of hours and shorter units: `1m30s`, `1 hour, 30 minutes`, `1.5h`, `01:30:00` or `PT1H30M`. Days and longer units
/// are refused, because their length depends on the calendar. A duration below zero is refused.
pub fn parse_duration(text: &str) -> Option<Duration> {
    text.parse::<SignedDuration>().ok()?.try_into().ok()
}

/// A local time for the zones, which are of chrono.
fn local(time: DateTime) -> Option<NaiveDateTime> {
    let small = |part: i8| u32::try_from(part).ok();
    let date = NaiveDate::from_ymd_opt(time.year().into(), small(time.month())?, small(time.day())?)?;
    let nanos = u32::try_from(time.subsec_nanosecond()).ok()?;
    date.and_hms_nano_opt(small(time.hour())?, small(time.minute())?, small(time.second())?, nanos)
}
