//! The value of a CSV cell.

use serde_json::{Number, Value};

/// The mark before the decimal places of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum DecimalMark {
    /// 1.5
    #[default]
    #[value(name = ".")]
    Point,
    /// 1,5
    #[value(name = ",")]
    Comma,
}

/// Reads a text as a number, exactly if 64 bits allow it.
///
/// A text without decimal mark and exponent is an integer. One that does not fit 64 bits is not a number, because a
/// floating-point number would lose its digits. A text with leading zeros (`00123`) is a name, no number. The words `nan` and
/// `inf` are not numbers.
pub(super) fn number(text: &str, mark: DecimalMark) -> Option<Number> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text).as_bytes();
    let allowed = |byte: &u8| match (byte, mark) {
        (b'.', DecimalMark::Point) | (b',', DecimalMark::Comma) => true,
        (byte, _) => byte.is_ascii_digit() || b"+-eE".contains(byte),
    };
    if !digits.iter().all(allowed) || matches!(digits, [b'0', next, ..] if next.is_ascii_digit()) {
        return None;
    }
    if text.contains(['.', ',', 'e', 'E']) {
        return text.replace(',', ".").parse().ok().and_then(Number::from_f64);
    }
    text.parse::<i64>().ok().map(Number::from)
}

/// Digits that every floating-point number keeps.
const DIGITS_KEPT: usize = 15;
/// Digits of the longest floating-point number that is written out in full.
const DIGITS_MAX: usize = 767;

/// Whether a floating-point number lost digits of its text.
pub(super) fn is_rounded(text: &str, number: f64) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    if mantissa.len() <= DIGITS_KEPT && number.is_normal() {
        return false;
    }
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_matches('0');
    match digits.len() {
        0 => false,
        1..=DIGITS_KEPT if number.is_normal() => false,
        count @ 1..=DIGITS_MAX => {
            let kept = format!("{:.*e}", count - 1, number.abs());
            let kept = kept.split('e').next().unwrap_or_default();
            !kept.bytes().filter(u8::is_ascii_digit).eq(digits.bytes())
        }
        _ => true,
    }
}

/// The value of a cell: `None` for an empty one, a number where the text is one, text otherwise.
pub(super) fn value(text: &str, mark: DecimalMark) -> Option<Value> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    Some(number(text, mark).map_or_else(|| Value::from(text), Value::Number))
}

/// Whether a text is a word such as NaN or inf. In a column of numbers it means that the value is missing.
pub(super) fn is_not_finite(text: &str) -> bool {
    let word = text.strip_prefix(['+', '-']).unwrap_or(text);
    ["nan", "inf", "infinity"].iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Whether a text would be a number if a comma were before its decimal places.
pub(super) fn has_decimal_comma(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(',').is_some_and(|(whole, places)| is_digits(whole) && is_digits(places))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_rounded_when_it_lost_digits_of_its_text() {
        for (text, expected) in [
            ("0.1", false),
            ("0", false),
            ("0.000", false),
            ("-0.30000000000000004", false),
            ("0.10000000000000001", false),
            ("0.1000000000000000055511151231257827021181583404541015625", false),
            ("123456789012345.000000", false),
            ("1.7976931348623157e308", false),
            ("4.9e-324", false),
            ("9007199254740993.0", true),
            ("0.123456789012345678", true),
            ("1,23456789012345678", true),
            ("1e-400", true),
            ("1.2345e-323", true),
        ] {
            let number = text.replace(',', ".").parse().unwrap();
            assert_eq!(is_rounded(text, number), expected, "{text}");
        }
        let long = format!("0.1{}", "3".repeat(DIGITS_MAX));
        assert!(is_rounded(&long, long.parse().unwrap()));
    }

    fn point(text: &str) -> Option<Value> {
        value(text, DecimalMark::Point)
    }

    #[test]
    fn numbers_are_integers_or_floating_point_as_they_are_written() {
        for (text, expected) in [
            ("0", json!(0)),
            (" -17 ", json!(-17)),
            ("+5", json!(5)),
            ("9223372036854775807", json!(i64::MAX)),
            ("0.000000", json!(0.0)),
            ("-4.687500", json!(-4.6875)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
        ] {
            let found = point(text).unwrap();
            assert_eq!(found, expected, "{text}");
            assert_eq!(found.is_i64(), expected.is_i64(), "{text}");
        }
    }

    #[test]
    fn other_cells_stay_text_and_empty_cells_stay_empty() {
        for text in [
            "OFF",
            "nan",
            "inf",
            "1,5",
            "9223372036854775808",
            "1e999",
            "--1",
            "e",
            "12:30",
            "00123",
            "-007",
            "00.5",
        ] {
            assert_eq!(point(text), Some(json!(text)), "{text}");
        }
        assert_eq!(point(""), None);
        assert_eq!(point("  "), None);
    }

    #[test]
    fn decimal_commas_are_read_with_the_option_and_recognised_without_it() {
        assert_eq!(value("1,5", DecimalMark::Comma), Some(json!(1.5)));
        assert_eq!(value("-12", DecimalMark::Comma), Some(json!(-12)));
        assert_eq!(value("1.5", DecimalMark::Comma), Some(json!("1.5")));
        assert_eq!(value("1.234,5", DecimalMark::Comma), Some(json!("1.234,5")));
        for (text, expected) in
            [("1,5", true), ("-0,25", true), ("1,5,2", false), ("a,5", false), (",5", false), ("1.5", false)]
        {
            assert_eq!(has_decimal_comma(text), expected, "{text}");
        }
    }

    #[test]
    fn words_for_no_number_are_recognised() {
        for (text, expected) in
            [("NaN", true), ("-inf", true), ("Infinity", true), ("nano", false), ("", false), ("off", false)]
        {
            assert_eq!(is_not_finite(text), expected, "{text}");
        }
    }
}
