//! Durations as people and as ISO 8601 write them.

use std::time::Duration;

use super::scanner::Scanner;

/// The longest number that is read, in digits.
const DIGITS_MAX: usize = 21;

const NANOSECOND: u128 = 1;
const MICROSECOND: u128 = 1_000;
const MILLISECOND: u128 = 1_000_000;
const SECOND: u128 = 1_000_000_000;
const MINUTE: u128 = 60 * SECOND;
const HOUR: u128 = 60 * MINUTE;

/// The names of the units with their nanoseconds. The longest name that fits counts.
const UNITS: [(&str, u128); 36] = [
    ("milliseconds", MILLISECOND),
    ("microseconds", MICROSECOND),
    ("nanoseconds", NANOSECOND),
    ("millisecond", MILLISECOND),
    ("microsecond", MICROSECOND),
    ("nanosecond", NANOSECOND),
    ("seconds", SECOND),
    ("minutes", MINUTE),
    ("µsecs", MICROSECOND),
    ("second", SECOND),
    ("minute", MINUTE),
    ("millis", MILLISECOND),
    ("micros", MICROSECOND),
    ("µsec", MICROSECOND),
    ("usecs", MICROSECOND),
    ("nsecs", NANOSECOND),
    ("nanos", NANOSECOND),
    ("msecs", MILLISECOND),
    ("milli", MILLISECOND),
    ("micro", MICROSECOND),
    ("hours", HOUR),
    ("usec", MICROSECOND),
    ("secs", SECOND),
    ("nsec", NANOSECOND),
    ("nano", NANOSECOND),
    ("msec", MILLISECOND),
    ("mins", MINUTE),
    ("hour", HOUR),
    ("µs", MICROSECOND),
    ("sec", SECOND),
    ("min", MINUTE),
    ("hrs", HOUR),
    ("us", MICROSECOND),
    ("ns", NANOSECOND),
    ("ms", MILLISECOND),
    ("hr", HOUR),
];
/// The units with one letter.
const LETTERS: [(&str, u128); 3] = [("s", SECOND), ("m", MINUTE), ("h", HOUR)];

/// Units that were read: each one is shorter than the one before.
struct Sum {
    nanos: u128,
    last_unit: u128,
}

impl Sum {
    const EMPTY: Self = Self { nanos: 0, last_unit: u128::MAX };

    /// Adds a number of a unit with billionths of it. Only a unit longer than a nanosecond can have them.
    fn add(&mut self, number: u64, billionths: Option<u32>, unit: u128) -> Option<()> {
        if unit >= self.last_unit || (billionths.is_some() && unit == NANOSECOND) {
            return None;
        }
        i64::try_from(number).ok()?;
        let part = u128::from(billionths.unwrap_or(0)) * unit / SECOND;
        self.nanos = self.nanos.checked_add(u128::from(number).checked_mul(unit)?.checked_add(part)?)?;
        self.last_unit = unit;
        Some(())
    }
}

/// Reads a duration of hours and shorter units: `1m30s`, `1 hour, 30 minutes`, `1.5h`, `01:30:00` or `PT1H30M`. Days and longer units
/// are refused, because their length depends on the calendar. A duration below zero is refused.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut text = Scanner(text.as_bytes());
    let is_negative = text.sign().unwrap_or(false);
    let mut sum = Sum::EMPTY;
    if text.eat_if(|byte| matches!(byte, b'P' | b'p')).is_some() {
        iso(&mut text, &mut sum)?;
    } else {
        friendly(&mut text, &mut sum)?;
        text.skip(is_blank);
    }
    let nanos = text.is_empty().then_some(sum.nanos).filter(|nanos| !is_negative || *nanos == 0)?;
    let seconds = u64::try_from(nanos / SECOND).ok().filter(|seconds| i64::try_from(*seconds).is_ok())?;
    Some(Duration::new(seconds, (nanos % SECOND) as u32))
}

/// Reads `T1H30M`.
fn iso(text: &mut Scanner<'_>, sum: &mut Sum) -> Option<()> {
    text.eat_if(|byte| matches!(byte, b'T' | b't'))?;
    loop {
        let number = text.number(DIGITS_MAX)?;
        let fraction = text.fraction()?;
        let unit = match text.eat_if(|_| true)? {
            b'H' | b'h' => HOUR,
            b'M' | b'm' => MINUTE,
            b'S' | b's' => SECOND,
            _ => return None,
        };
        sum.add(number, fraction, unit)?;
        if fraction.is_some() || text.is_empty() {
            return Some(());
        }
    }
}

fn friendly(text: &mut Scanner<'_>, sum: &mut Sum) -> Option<()> {
    let mut number = text.number(DIGITS_MAX)?;
    loop {
        if text.eat(b':') {
            return clock(number, text, sum);
        }
        let fraction = text.fraction()?;
        text.skip(is_blank);
        let unit = unit(text)?;
        let has_comma = text.eat(b',');
        sum.add(number, fraction, unit)?;
        let before = *text;
        text.skip(is_blank);
        let has_more = fraction.is_none() && text.peek().is_some_and(|byte| byte.is_ascii_digit());
        if has_comma && (!has_more || before.0.len() == text.0.len()) {
            return None;
        }
        if !has_more {
            return Some(());
        }
        number = text.number(DIGITS_MAX)?;
    }
}

/// Reads `30:00` after hours and a colon.
fn clock(hours: u64, text: &mut Scanner<'_>, sum: &mut Sum) -> Option<()> {
    let minutes = text.number(DIGITS_MAX)?;
    text.eat_if(|byte| byte == b':')?;
    let seconds = text.number(DIGITS_MAX)?;
    let fraction = text.fraction()?;
    sum.add(hours, None, HOUR)?;
    sum.add(minutes, None, MINUTE)?;
    sum.add(seconds, fraction, SECOND)
}

fn unit(text: &mut Scanner<'_>) -> Option<u128> {
    let (name, unit) = UNITS.iter().chain(&LETTERS).find(|(name, _)| text.0.starts_with(name.as_bytes()))?;
    text.0 = &text.0[name.len()..];
    Some(*unit)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0C')
}
