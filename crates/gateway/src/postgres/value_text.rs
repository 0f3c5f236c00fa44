//! Writes numbers and times in PostgreSQL's text form (its manual, sections 8.1.3 and 8.5.2), which clients parse.
//!
//! For a few numbers PostgreSQL writes more digits, such as `9.999999999999999e+22` for `1e+23`: it does not rely on readers that
//! round to even.

use std::fmt::{Arguments, Write as _};
use std::io::Write as _;

use bytes::{BufMut, BytesMut};
use model::{Date, Timestamp};

use crate::text::{F64_BYTES_MAX, UtcText, write_few_digits};

/// Powers of ten from which on a number has an exponent (PostgreSQL's `d2s.c` and `f2s.c`).
const F64_EXPONENT_MIN: i32 = 15;
const F32_EXPONENT_MIN: i32 = 6;
/// The smallest power of ten without an exponent.
const PLAIN_EXPONENT_MIN: i32 = -4;
/// Upper bound of the text of a number with an exponent.
const DIGITS_BYTES: usize = 32;
const DAY_US: i64 = 86_400_000_000;
/// `YYYY-MM-DD`
const DATE_BYTES: usize = 10;
/// `HH:MM:SS`
const TIME_BYTES: usize = 8;
/// A point and six digits.
const FRACTION_BYTES: usize = 7;

/// Appends the shortest text that parses to the number.
pub(super) fn write_f64(number: f64, out: &mut BytesMut) {
    let mut room = [0; F64_BYTES_MAX];
    if let Some(length) = write_few_digits(number, &mut room) {
        let text = &room[..length];
        out.put_slice(text.strip_suffix(b".0").unwrap_or(text));
    } else if number.is_finite() {
        write_digits(format_args!("{number:e}"), F64_EXPONENT_MIN, out);
    } else {
        out.put_slice(unbounded(number));
    }
}

/// Like [`write_f64`], for a four-byte number.
pub(super) fn write_f32(number: f32, out: &mut BytesMut) {
    if number.is_finite() {
        write_digits(format_args!("{number:e}"), F32_EXPONENT_MIN, out);
    } else {
        out.put_slice(unbounded(number.into()));
    }
}

fn unbounded(number: f64) -> &'static [u8] {
    if number.is_nan() {
        b"NaN"
    } else if number > 0.0 {
        b"Infinity"
    } else {
        b"-Infinity"
    }
}

/// Appends a number that is given as digits with an exponent, such as `-1.5e-7`: with one if it is `exponent_min` or more, or very
/// small.
fn write_digits(number: Arguments<'_>, exponent_min: i32, out: &mut BytesMut) {
    let mut room = [0; DIGITS_BYTES];
    let mut rest = room.as_mut_slice();
    rest.write_fmt(number).expect("BUG: every number fits");
    let length = DIGITS_BYTES - rest.len();
    let text = std::str::from_utf8(&room[..length]).expect("BUG: numbers are ASCII");
    let (mantissa, exponent) = text.split_once('e').expect("BUG: the number is given with an exponent");
    let exponent: i32 = exponent.parse().expect("BUG: exponents are numbers");
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |digits| ("-", digits));
    let (first, others) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let places = exponent.unsigned_abs() as usize;
    out.put_slice(sign.as_bytes());
    if !(PLAIN_EXPONENT_MIN..exponent_min).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "{mantissa}e{sign}{places:02}").expect("BUG: memory takes text");
    } else if exponent < 0 {
        out.put_slice(b"0.");
        out.put_bytes(b'0', places - 1);
        out.put_slice(first.as_bytes());
        out.put_slice(others.as_bytes());
    } else {
        let (whole, fraction) = others.split_at(others.len().min(places));
        out.put_slice(first.as_bytes());
        out.put_slice(whole.as_bytes());
        out.put_bytes(b'0', places - whole.len());
        if !fraction.is_empty() {
            out.put_u8(b'.');
            out.put_slice(fraction.as_bytes());
        }
    }
}

/// Writes times as `YYYY-MM-DD HH:MM:SS.ffffff+00`: without zeros at the end of the second, and without the zone if they have none.
pub(super) struct TimeText {
    utc: UtcText,
    has_zone: bool,
    /// Of the time that is written.
    text: Vec<u8>,
}

impl TimeText {
    pub(super) fn new(has_zone: bool) -> Self {
        Self { utc: UtcText::new(), has_zone, text: Vec::new() }
    }

    pub(super) fn write(&mut self, micros: i64, out: &mut BytesMut) {
        self.text.clear();
        let is_before_christ = if self.utc.write(micros, &mut self.text) {
            out.put_slice(&self.text[..DATE_BYTES]);
            false
        } else {
            // The time of day does not depend on the date.
            self.utc.write(micros.rem_euclid(DAY_US), &mut self.text);
            write_date(Timestamp::from_micros(micros).date(), out)
        };
        let (time, fraction) = self.text[DATE_BYTES + 1..].split_at(TIME_BYTES);
        out.put_u8(b' ');
        out.put_slice(time);
        let zeros = fraction[..FRACTION_BYTES].iter().rev().take_while(|digit| **digit == b'0').count();
        if zeros < FRACTION_BYTES - 1 {
            out.put_slice(&fraction[..FRACTION_BYTES - zeros]);
        }
        if self.has_zone {
            out.put_slice(b"+00");
        }
        if is_before_christ {
            out.put_slice(b" BC");
        }
    }
}

/// Appends a time of day, without needless zeros behind the seconds.
pub(super) fn write_time_of_day(micros: i64, out: &mut BytesMut) {
    let seconds = micros / 1_000_000;
    let fraction = format!(".{:06}", micros % 1_000_000);
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    write!(out, "{hours:02}:{minutes:02}:{:02}{fraction}", seconds % 60).expect("BUG: memory takes text");
}

/// Appends a date that is given in days since 1970-01-01.
pub(super) fn write_day(days: i32, out: &mut BytesMut) {
    let date = Timestamp::from_micros(i64::from(days) * DAY_US).date();
    if write_date(date, out) {
        out.put_slice(b" BC");
    }
}

/// Appends a date whose year may have more or fewer than four digits. Returns whether the year is before Christ.
fn write_date(Date { year, month, day }: Date, out: &mut BytesMut) -> bool {
    let counted = if year > 0 { year } else { 1 - year };
    write!(out, "{counted:04}-{month:02}-{day:02}").expect("BUG: memory takes text");
    year <= 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made by PostgreSQL 15: `SELECT x::float8::text`.
    const F64: &str = include_str!("testdata/float8.txt");
    /// `SELECT x::float4::text`
    const F32: &str = include_str!("testdata/float4.txt");
    /// `SELECT x::timestamptz::text` in UTC; microseconds since 1970 first.
    const TIMES: &str = include_str!("testdata/timestamptz.txt");

    fn written(write: impl FnOnce(&mut BytesMut)) -> String {
        let mut out = BytesMut::new();
        write(&mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    /// Lines of two columns.
    fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
        text.lines().map(|line| line.split_once('|').unwrap())
    }

    #[test]
    fn numbers_equal_those_of_postgresql() {
        for (bits, expected) in lines(F64) {
            let number = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
            assert_eq!(written(|out| write_f64(number, out)), expected, "{number:e}");
        }
        for (bits, expected) in lines(F32) {
            let number = f32::from_bits(u32::from_str_radix(bits, 16).unwrap());
            assert_eq!(written(|out| write_f32(number, out)), expected, "{number:e}");
        }
    }

    #[test]
    fn times_equal_those_of_postgresql() {
        let (mut with_zone, mut without) = (TimeText::new(true), TimeText::new(false));
        for (micros, expected) in lines(TIMES) {
            let micros = micros.parse().unwrap();
            assert_eq!(written(|out| with_zone.write(micros, out)), expected, "{micros}");
            let expected = expected.replace("+00", "");
            assert_eq!(written(|out| without.write(micros, out)), expected, "{micros}");
        }
    }

    proptest! {
        #[test]
        fn the_text_of_a_number_parses_back(bits in any::<u64>(), whole in any::<u32>(), decimals in 0..9_i32) {
            for number in [f64::from_bits(bits), f64::from(whole) / 10_f64.powi(decimals)] {
                let text = written(|out| write_f64(number, out));
                let read: f64 = text.parse().unwrap();
                prop_assert!(read.to_bits() == number.to_bits() || (read.is_nan() && number.is_nan()), "{text}");
            }
        }
    }
}
