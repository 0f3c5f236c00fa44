//! Values of fields.

use std::borrow::Cow;

use super::delimiters::is_end;

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum LineValue<'a> {
    /// A number.
    F64(f64),
    /// An integer, `i`.
    I64(i64),
    /// An unsigned integer, `u`.
    U64(u64),
    /// A boolean.
    Bool(bool),
    /// A text.
    Text(Cow<'a, str>),
}

/// Key and value of a field.
pub type Field<'a> = (Cow<'a, str>, LineValue<'a>);

/// A value and the offset after it.
pub(super) type Scanned = Result<(LineValue<'static>, usize), &'static str>;

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];
/// Up to this number each whole number is a double.
const WHOLE_MAX: u64 = 1 << 53;
/// Digits that never overflow 64 bits.
const DIGITS_SAFE: usize = 18;

/// The number or boolean at `at`.
#[inline]
pub(super) fn scalar(text: &str, at: usize) -> Scanned {
    let bytes = text.as_bytes();
    match bytes[at] {
        b'0'..=b'9' | b'-' | b'.' => number(text, at),
        b't' | b'f' | b'T' | b'F' => boolean(text, at),
        b'n' | b'N' => Err("invalid number"),
        _ => Err("invalid boolean"),
    }
}

#[inline]
fn number(text: &str, start: usize) -> Scanned {
    let bytes = text.as_bytes();
    let negative = bytes[start] == b'-';
    let (mantissa, whole) = digits(bytes, start + usize::from(negative), 0);
    let mut at = start + usize::from(negative) + whole;
    let (mut all, mut fraction) = (mantissa, 0);
    let has_point = bytes.get(at) == Some(&b'.');
    if has_point {
        (all, fraction) = digits(bytes, at + 1, mantissa);
        at += 1 + fraction;
    }
    if whole + fraction == 0 {
        return Err("invalid number");
    }
    if is_end(bytes, at) {
        // A quotient of two exact doubles is the double nearest to the decimal number.
        if whole + fraction <= DIGITS_SAFE && all <= WHOLE_MAX {
            let value = all as f64 / POWERS[fraction];
            return Ok((LineValue::F64(if negative { -value } else { value }), at));
        }
        return float(text, start, at);
    }
    match bytes[at] {
        b'i' if !has_point && is_end(bytes, at + 1) => {
            let value = match (whole <= DIGITS_SAFE, negative) {
                (true, false) => mantissa as i64,
                (true, true) => -(mantissa as i64),
                (false, _) => text[start..at].parse().map_err(|_| "integer out of range")?,
            };
            Ok((LineValue::I64(value), at + 1))
        }
        b'u' if !has_point && !negative && is_end(bytes, at + 1) => {
            let value = text[start..at].parse().map_err(|_| "unsigned integer out of range")?;
            Ok((LineValue::U64(value), at + 1))
        }
        b'e' | b'E' => {
            let exponent = bytes[at + 1..].iter();
            let length = exponent.take_while(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-')).count();
            let end = at + 1 + length;
            if is_end(bytes, end) { float(text, start, end) } else { Err("invalid number") }
        }
        _ => Err("invalid number"),
    }
}

/// The number that continues `from` with the digits at `at`, which wraps beyond 64 bits, and how many digits there are.
#[inline]
fn digits(bytes: &[u8], at: usize, from: u64) -> (u64, usize) {
    let (mut value, mut count) = (from, 0);
    while let Some(digit) =
        bytes.get(at + count).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10)
    {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        count += 1;
    }
    (value, count)
}

fn float(text: &str, start: usize, end: usize) -> Scanned {
    let value: f64 = text[start..end].parse().map_err(|_| "invalid float")?;
    if value.is_finite() { Ok((LineValue::F64(value), end)) } else { Err("invalid float") }
}

fn boolean(text: &str, at: usize) -> Scanned {
    const NAMES: [(&str, bool); 10] = [
        ("true", true),
        ("false", false),
        ("t", true),
        ("f", false),
        ("True", true),
        ("False", false),
        ("TRUE", true),
        ("FALSE", false),
        ("T", true),
        ("F", false),
    ];
    let rest = &text.as_bytes()[at..];
    let found = NAMES.iter().find(|(name, _)| rest.starts_with(name.as_bytes()) && is_end(rest, name.len()));
    found.map(|(name, value)| (LineValue::Bool(*value), at + name.len())).ok_or("invalid boolean")
}

/// The time at `at` and the offset after it.
#[inline]
pub(super) fn time(text: &str, start: usize) -> Result<(i64, usize), &'static str> {
    let bytes = text.as_bytes();
    let negative = bytes[start] == b'-';
    let (value, count) = digits(bytes, start + usize::from(negative), 0);
    let end = start + usize::from(negative) + count;
    if count == 0 || !(is_end(bytes, end) && bytes.get(end) != Some(&b',')) {
        return Err("bad timestamp");
    }
    if count <= DIGITS_SAFE {
        return Ok((if negative { -(value as i64) } else { value as i64 }, end));
    }
    let value = text[start..end].parse().map_err(|_| "time outside range")?;
    Ok((value, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_decimal_number_is_the_double_that_the_standard_library_reads(
            text in "-?([0-9]{1,25}(\\.[0-9]{0,25})?|\\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?",
        ) {
            let wanted: f64 = text.parse().unwrap();
            match scalar(&text, 0) {
                Ok((LineValue::F64(value), end)) => {
                    proptest::prop_assert_eq!((value.to_bits(), end), (wanted.to_bits(), text.len()));
                }
                other => {
                    proptest::prop_assert!(!wanted.is_finite(), "{text} {other:?}");
                }
            }
        }

        #[test]
        fn any_integer_is_exact(signed: i64, unsigned: u64) {
            let text = format!("{signed}i,");
            proptest::prop_assert_eq!(scalar(&text, 0), Ok((LineValue::I64(signed), text.len() - 1)));
            let text = format!("{unsigned}u ");
            proptest::prop_assert_eq!(scalar(&text, 0), Ok((LineValue::U64(unsigned), text.len() - 1)));
            proptest::prop_assert_eq!(time(&format!("{signed}\n"), 0).unwrap().0, signed);
        }
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        for (text, reason) in [
            (".", "invalid number"),
            ("-", "invalid number"),
            ("--1", "invalid number"),
            ("1.1.1", "invalid number"),
            ("0x10", "invalid number"),
            ("1_0", "invalid number"),
            ("1i2", "invalid number"),
            ("1.5i", "invalid number"),
            ("1e5i", "invalid number"),
            ("-1u", "invalid number"),
            ("i", "invalid boolean"),
            ("1-1", "invalid number"),
            ("1\t1", "invalid number"),
            ("NaN", "invalid number"),
            ("nan", "invalid number"),
            ("-inf", "invalid number"),
            ("inf", "invalid boolean"),
            ("+1", "invalid boolean"),
            ("tRue", "invalid boolean"),
            ("truet", "invalid boolean"),
            ("1e", "invalid float"),
            ("1e400", "invalid float"),
            ("1e5e5", "invalid number"),
            ("9223372036854775808i", "integer out of range"),
            ("18446744073709551616u", "unsigned integer out of range"),
        ] {
            assert_eq!(scalar(text, 0), Err(reason), "{text}");
        }
        assert_eq!(scalar(&"9".repeat(400), 0), Err("invalid float"));
        assert_eq!(time("9223372036854775808", 0), Err("time outside range"));
        assert_eq!(time("12:30", 0), Err("bad timestamp"));
        assert_eq!(time("-", 0), Err("bad timestamp"));
    }
}
