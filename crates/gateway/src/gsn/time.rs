//! Times in GSN's requests and answers. All are in UTC, which the answers name as `+0000`.

use model::calendar::Moment;
use model::{Date, Timestamp};

use super::java_number::write_integer;
use crate::text::{date_digits, pair};

/// The form of times in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeFormat {
    /// `27/11/2026 20:15:30 +0000`: the form of GSN's own configuration.
    Container,
    /// `2026-11-27T20:15:30.125+0000`
    Iso,
    /// `2026-11-27 20:15:30`
    Blank,
    /// `2026-11-27T20:15:30Z`
    IsoSeconds,
    /// `2026-11-27T20:15:30.125Z`
    IsoMillis,
    /// Milliseconds since 1970.
    Unix,
}

impl TimeFormat {
    /// The text of 1970. Every form has the date in the first ten bytes, and the time of day after one more.
    const fn template(self) -> &'static [u8] {
        match self {
            Self::Container => b"01/01/1970 00:00:00 +0000",
            Self::Iso => b"1970-01-01T00:00:00.000+0000",
            Self::Blank => b"1970-01-01 00:00:00",
            Self::IsoSeconds => b"1970-01-01T00:00:00Z",
            Self::IsoMillis => b"1970-01-01T00:00:00.000Z",
            Self::Unix => b"",
        }
    }

    const fn has_millis(self) -> bool {
        matches!(self, Self::Iso | Self::IsoMillis)
    }
}

/// Bytes of a date.
const DATE: usize = 10;
/// Where the milliseconds begin.
const MILLIS: usize = 20;
const DAY_MS: i64 = 86_400_000;

/// Writes times. It keeps the text of the last one, because most times are of the same day.
#[derive(Debug)]
pub(super) struct TimeText {
    format: TimeFormat,
    text: Vec<u8>,
    day: i64,
}

impl TimeText {
    pub(super) fn new(format: TimeFormat) -> Self {
        Self { format, text: format.template().to_vec(), day: 0 }
    }

    /// Appends a time in milliseconds. A time of a year that has not four digits is a number of milliseconds.
    pub(super) fn write(&mut self, millis: i64, out: &mut Vec<u8>) {
        if self.format == TimeFormat::Unix {
            return write_integer(millis, out);
        }
        let (day, of_day) = (millis.div_euclid(DAY_MS), millis.rem_euclid(DAY_MS) as u32);
        if day != self.day && !self.set_day(day, millis) {
            return write_integer(millis, out);
        }
        let (seconds, millis) = (of_day / 1_000, of_day % 1_000);
        for (at, number) in [(11, seconds / 3_600), (14, seconds / 60 % 60), (17, seconds % 60)] {
            self.text[at..at + 2].copy_from_slice(&pair(number));
        }
        if self.format.has_millis() {
            self.text[MILLIS] = b'0' + (millis / 100) as u8;
            self.text[MILLIS + 1..MILLIS + 3].copy_from_slice(&pair(millis % 100));
        }
        out.extend_from_slice(&self.text);
    }

    /// Writes the date, if its year has four digits.
    fn set_day(&mut self, day: i64, millis: i64) -> bool {
        let digits = Timestamp::from_millis(millis).and_then(date_digits);
        let Some([high, low, month, dom]) = digits else { return false };
        let date: [u8; DATE] = match self.format {
            TimeFormat::Container => {
                [dom[0], dom[1], b'/', month[0], month[1], b'/', high[0], high[1], low[0], low[1]]
            }
            _ => [high[0], high[1], low[0], low[1], b'-', month[0], month[1], b'-', dom[0], dom[1]],
        };
        self.text[..DATE].copy_from_slice(&date);
        self.day = day;
        true
    }
}

/// A time as text.
pub(super) fn time_text(millis: i64, format: TimeFormat) -> String {
    let mut out = Vec::new();
    TimeText::new(format).write(millis, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Reads `27/11/2026 20:15:30`, in milliseconds.
pub(super) fn parse_day_first(text: &str) -> Option<i64> {
    let (date, time) = text.trim().split_once(' ')?;
    let [day, month, year] = numbers(date, '/')?;
    of_parts([year, month, day], numbers(time.trim(), ':')?, 0)
}

/// Reads `2026-11-27T20:15:30`, also without the time of day, with milliseconds, with a blank in place of the T, and with an offset
/// from UTC. In milliseconds.
pub(super) fn parse_iso(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, rest) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, "00:00:00"),
    };
    let (time, offset_minutes) = split_offset(rest)?;
    let (time, millis) = match time.split_once('.') {
        Some((time, digits)) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let digits = &digits[..digits.len().min(3)];
            (time, digits.parse::<i64>().ok()? * 10_i64.pow(3 - digits.len() as u32))
        }
        Some(_) => return None,
        None => (time, 0),
    };
    Some(of_parts(numbers(date, '-')?, numbers(time, ':')?, millis)? - offset_minutes * 60_000)
}

/// Splits `20:15:30+0100` into the time and the offset in minutes.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = text.strip_suffix('Z') {
        return Some((time, 0));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let digits: String = text[at + 1..].chars().filter(|letter| *letter != ':').collect();
    let is_offset = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let offset: i64 = if is_offset { digits.parse().ok()? } else { return None };
    let minutes = offset / 100 * 60 + offset % 100;
    Some((&text[..at], if text[at..].starts_with('-') { -minutes } else { minutes }))
}

fn numbers(text: &str, separator: char) -> Option<[i16; 3]> {
    let mut parts = text.split(separator);
    let mut next = || parts.next()?.parse().ok();
    let numbers = [next()?, next()?, next()?];
    parts.next().is_none().then_some(numbers)
}

fn of_parts([year, month, day]: [i16; 3], [hour, minute, second]: [i16; 3], millis: i64) -> Option<i64> {
    let small = |number: i16| u8::try_from(number).ok();
    let date = Date { year: year.into(), month: small(month)?, day: small(day)? };
    let time = Moment::of_date(date, [small(hour)?, small(minute)?, small(second)?])?;
    Some(time.millis() + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: i64 = 1_795_810_530_125;

    #[test]
    fn each_format_has_its_text() {
        for (format, text) in [
            (TimeFormat::Container, "27/11/2026 20:15:30 +0000"),
            (TimeFormat::Iso, "2026-11-27T20:15:30.125+0000"),
            (TimeFormat::Blank, "2026-11-27 20:15:30"),
            (TimeFormat::IsoSeconds, "2026-11-27T20:15:30Z"),
            (TimeFormat::IsoMillis, "2026-11-27T20:15:30.125Z"),
            (TimeFormat::Unix, "1795810530125"),
        ] {
            assert_eq!(time_text(TIME, format), text);
        }
    }

    #[test]
    fn a_writer_goes_from_day_to_day() {
        let mut writer = TimeText::new(TimeFormat::Iso);
        let mut out = Vec::new();
        for millis in [0, TIME, TIME + 1, -1, i64::MAX, 0] {
            writer.write(millis, &mut out);
            out.push(b' ');
        }
        let expected = "1970-01-01T00:00:00.000+0000 2026-11-27T20:15:30.125+0000 2026-11-27T20:15:30.126+0000 \
                        1969-12-31T23:59:59.999+0000 9223372036854775807 1970-01-01T00:00:00.000+0000 ";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn times_are_read_in_both_orders() {
        let whole = TIME - 125;
        assert_eq!(parse_day_first("27/11/2026 20:15:30"), Some(whole));
        assert_eq!(parse_day_first("7/1/2026 0:0:0"), Some(1_767_744_000_000));
        assert_eq!(parse_iso("2026-11-27T20:15:30"), Some(whole));
        assert_eq!(parse_iso("2026-11-27 20:15:30.125Z"), Some(TIME));
        assert_eq!(parse_iso("2026-11-27T21:15:30.125+0100"), Some(TIME));
        assert_eq!(parse_iso("2026-11-27T14:45:30.125-05:30"), Some(TIME));
        assert_eq!(parse_iso("2026-01-07"), Some(1_767_744_000_000));
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for text in
            ["", "27/11/2026", "32/01/2026 00:00:00", "2026-11-27 20:15:30", "27/11/2026 20:15", "a b"]
        {
            assert_eq!(parse_day_first(text), None, "{text}");
        }
        for text in ["", "2026-13-01", "2026-11-27T25:00:00", "2026-11-27T20:15:30.", "27/11/2026 20:15:30"] {
            assert_eq!(parse_iso(text), None, "{text}");
        }
    }
}
