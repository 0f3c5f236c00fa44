//! Times as ISO 8601 and RFC 9557 write them.
//!
//! Besides RFC 3339 these are accepted: the basic format without `-` and `:`, times without seconds or minutes, a blank in place of
//! the `T`, years with a sign and six digits, and annotations in brackets, which have no effect. The second 60 is the second 59.

use std::str::FromStr;

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

use super::moment::Moment;
use super::offset::{ISO, OffsetForm, Part};
use super::scanner::Scanner;

/// The last year that a text can name; the first one is -9999.
pub(super) const YEAR_MAX: u64 = 9_999;

/// The text is not a time with an offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a time such as 2024-05-01T08:00:00Z")]
pub struct NotATime;

/// What a text says.
struct Parts {
    date: NaiveDate,
    time: Option<NaiveTime>,
    offset: Option<Offset>,
}

enum Offset {
    Zulu,
    Seconds(i32),
}

impl FromStr for Moment {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let parts = parts(text).ok_or(NotATime)?;
        let offset_s = match parts.offset.ok_or(NotATime)? {
            Offset::Zulu => 0,
            Offset::Seconds(seconds) => seconds,
        };
        let local = parts.date.and_time(parts.time.ok_or(NotATime)?);
        Self::of_local(local, offset_s).ok_or(NotATime)
    }
}

/// Reads a local time. Without a time of day it is midnight. `Z` is refused; a numeric offset has no effect.
pub fn parse_local(text: &str) -> Option<NaiveDateTime> {
    let parts = parts(text)?;
    (!matches!(parts.offset, Some(Offset::Zulu))).then(|| parts.date.and_time(parts.time.unwrap_or_default()))
}

fn parts(text: &str) -> Option<Parts> {
    let mut text = Scanner(text.as_bytes());
    let date = date(&mut text)?;
    let (mut time, mut offset) = (None, None);
    if text.eat_if(|byte| matches!(byte, b' ' | b'T' | b't')).is_some() {
        time = Some(time_of_day(&mut text)?);
        offset = match text.peek() {
            Some(b'Z' | b'z') => text.eat_if(|_| true).map(|_| Offset::Zulu),
            Some(b'+' | b'-') => Some(Offset::Seconds(ISO.read(&mut text)?)),
            _ => None,
        };
    }
    annotations(&mut text)?;
    text.is_empty().then_some(Parts { date, time, offset })
}

fn date(text: &mut Scanner<'_>) -> Option<NaiveDate> {
    let year = year(text)?;
    let is_extended = text.eat(b'-');
    let month = text.two(1, 12)?;
    if is_extended && !text.eat(b'-') {
        return None;
    }
    NaiveDate::from_ymd_opt(year, month, text.two(1, 31)?)
}

fn year(text: &mut Scanner<'_>) -> Option<i32> {
    let sign = text.sign();
    let year = text.fixed(if sign.is_some() { 6 } else { 4 }).filter(|year| *year <= YEAR_MAX)?;
    match (sign, year as i32) {
        (Some(true), 0) => None,
        (Some(true), year) => Some(-year),
        (_, year) => Some(year),
    }
}

fn time_of_day(text: &mut Scanner<'_>) -> Option<NaiveTime> {
    let hour = text.two(0, 23)?;
    let is_extended = text.peek() == Some(b':');
    let has_next = |text: &mut Scanner<'_>| if is_extended { text.eat(b':') } else { text.has_two_digits() };
    if !has_next(text) {
        return NaiveTime::from_hms_opt(hour, 0, 0);
    }
    let minute = text.two(0, 59)?;
    if !has_next(text) {
        return NaiveTime::from_hms_opt(hour, minute, 0);
    }
    let second = text.two(0, 60)?.min(59);
    NaiveTime::from_hms_nano_opt(hour, minute, second, text.fraction()?.unwrap_or(0))
}

/// Reads `[Europe/Berlin][u-ca=iso8601]`. A zone can only come first.
fn annotations(text: &mut Scanner<'_>) -> Option<()> {
    let mut is_first = true;
    while text.eat(b'[') {
        let is_critical = text.eat(b'!');
        let is_zone = is_first && zone(&mut text.clone()).map(|rest| *text = rest).is_some();
        // An unknown annotation that must be understood is refused.
        if !is_zone {
            keyed(text).filter(|()| !is_critical)?;
        }
        if !text.eat(b']') {
            return None;
        }
        is_first = false;
    }
    Some(())
}

/// Reads an offset or the name of a zone up to the bracket.
fn zone<'a>(text: &mut Scanner<'a>) -> Option<Scanner<'a>> {
    if matches!(text.peek(), Some(b'+' | b'-')) {
        OffsetForm { last: Part::Minutes, ..ISO }.read(text)?;
    } else {
        zone_name(text)?;
    }
    (text.peek() == Some(b']')).then_some(*text)
}

/// Reads the name of a zone, such as `Europe/Berlin`. Whether it exists is not checked.
pub(super) fn zone_name(text: &mut Scanner<'_>) -> Option<()> {
    loop {
        text.eat_if(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.'))?;
        text.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'-'));
        if !text.eat(b'/') {
            return Some(());
        }
    }
}

/// Reads `key=value` with values between hyphens.
fn keyed(text: &mut Scanner<'_>) -> Option<()> {
    text.eat_if(|byte| byte.is_ascii_lowercase() || byte == b'_')?;
    text.skip(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'));
    text.eat_if(|byte| byte == b'=')?;
    loop {
        text.eat_if(|byte| byte.is_ascii_alphanumeric())?;
        text.skip(|byte| byte.is_ascii_alphanumeric());
        if !text.eat(b'-') {
            return Some(());
        }
    }
}
