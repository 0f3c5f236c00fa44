//! From the text of a cell to a JSON value.

use serde_json::{Number, Value};

/// The value of a cell: `None` for an empty one, a number where the text is one, text otherwise.
///
/// A text without point and exponent is an integer; one that does not fit 64 bits stays text, because a floating-point
/// number would lose its digits. Words that some programs take for numbers (`nan`, `inf`) are text.
pub(super) fn value(text: &str) -> Option<Value> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    Some(number(text).map_or_else(|| Value::from(text), Value::Number))
}

fn number(text: &str) -> Option<Number> {
    if !text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) {
        return None;
    }
    if text.contains(['.', 'e', 'E']) {
        return text.parse().ok().and_then(Number::from_f64);
    }
    text.parse::<i64>().ok().map(Number::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            let found = value(text).unwrap();
            assert_eq!(found, expected, "{text}");
            assert_eq!(found.is_i64(), expected.is_i64(), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_stays_text_and_nothing_stays_nothing() {
        for text in ["OFF", "nan", "inf", "1,5", "9223372036854775808", "1e999", "--1", "e", "12:30"] {
            assert_eq!(value(text), Some(json!(text)), "{text}");
        }
        assert_eq!(value(""), None);
        assert_eq!(value("  "), None);
    }
}
