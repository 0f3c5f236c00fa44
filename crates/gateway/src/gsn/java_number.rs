//! Numbers as Java writes them (`Double.toString`, `Float.toString`): the form of numbers in GSN's answers.
//!
//! From 1e-3 to 1e7 a number has a decimal point, beyond an exponent such as `1.5E10`. The digits are the fewest that mean the
//! same number.

use std::io::Write as _;

use crate::text::{F64_BYTES_MAX, I64_BYTES_MAX, write_f64, write_few_digits, write_i64};

/// Below this a number has an exponent.
const DECIMAL_MIN: f64 = 1e-3;
/// From this on a number has an exponent.
const DECIMAL_MAX: f64 = 1e7;
/// Digits that every f32 keeps.
const F32_DIGITS: usize = 6;

/// Appends a number of 64 bits.
pub(super) fn write_double(number: f64, out: &mut Vec<u8>) {
    if !is_decimal(number) {
        return write_other(number, format_args!("{number:e}"), out);
    }
    // Between these bounds JSON has the same text.
    let mut room = [0; F64_BYTES_MAX];
    let length = write_f64(number, &mut room);
    out.extend_from_slice(&room[..length]);
}

/// Appends a number of 32 bits, which is given with 64.
pub(super) fn write_float(number: f64, out: &mut Vec<u8>) {
    if number.abs() < DECIMAL_MAX {
        let mut room = [0; F64_BYTES_MAX];
        // The text of a number with few digits is the same for 32 bits.
        if let Some(length) = write_few_digits(number, &mut room)
            && length <= F32_DIGITS + 1
        {
            return out.extend_from_slice(&room[..length]);
        }
    }
    let float = number as f32;
    match is_decimal(f64::from(float)) {
        true => write!(out, "{float:?}").expect("BUG: memory takes text"),
        false => write_other(f64::from(float), format_args!("{float:e}"), out),
    }
}

/// Appends an integer.
pub(super) fn write_integer(number: i64, out: &mut Vec<u8>) {
    let mut room = [0; I64_BYTES_MAX];
    let length = write_i64(number, &mut room);
    out.extend_from_slice(&room[..length]);
}

fn is_decimal(number: f64) -> bool {
    number == 0.0 || (DECIMAL_MIN..DECIMAL_MAX).contains(&number.abs())
}

/// Appends a number with an exponent, `scientific` in Rust's form, or one that is not finite.
#[cold]
fn write_other(number: f64, scientific: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
    if number.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if number.is_infinite() {
        return out.extend_from_slice(if number > 0.0 { b"Infinity" } else { b"-Infinity" });
    }
    let text = scientific.to_string();
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    write!(out, "{digits}{point}E{exponent}").expect("BUG: memory takes text");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decimals_have_the_fewest_digits(number in -1e7..1e7_f64) {
            prop_assume!(is_decimal(number));
            prop_assert_eq!(double(number), format!("{number:?}"));
        }

        #[test]
        fn integers_have_their_digits(number in any::<i64>()) {
            let mut out = Vec::new();
            write_integer(number, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }

    fn double(number: f64) -> String {
        let mut out = Vec::new();
        write_double(number, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn float(number: f64) -> String {
        let mut out = Vec::new();
        write_float(number, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_are_as_java_writes_them() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (20.0, "20.0"),
            (-21.5, "-21.5"),
            (0.001, "0.001"),
            (0.000_999, "9.99E-4"),
            (9_999_999.0, "9999999.0"),
            (9_999_999.999_999_998, "9999999.999999998"),
            (1e7, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (1e-10, "1.0E-10"),
            (1.0 / 3.0, "0.3333333333333333"),
            (1_201_600_800_000.0, "1.2016008E12"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(double(number), text);
        }
    }

    #[test]
    fn floats_have_the_digits_of_32_bits() {
        for (number, text) in [
            (0.1, "0.1"),
            (f64::from(0.1_f32), "0.1"),
            (-46.52, "-46.52"),
            (16_777_216.0, "1.6777216E7"),
            (1_234_567.0, "1234567.0"),
            (1.0 / 3.0, "0.33333334"),
            (1e-5, "1.0E-5"),
            (1e300, "Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(float(number), text);
        }
    }
}
