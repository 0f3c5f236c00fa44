//! Converts texts of servers into values.

use crate::unit::Unit;
use crate::value::{Value, ValueKind};

/// The value of a setting in the unit of its parameter. `None` if the text is not of its kind.
pub(crate) fn setting(text: &str, unit: Unit) -> Option<Value> {
    match unit.kind() {
        ValueKind::Text => Some(Value::Text(text.to_owned())),
        ValueKind::Number => number(text).map(Value::Number),
        ValueKind::Boolean => match text.to_ascii_lowercase().as_str() {
            "on" | "yes" | "true" | "1" => Some(Value::Boolean(true)),
            "off" | "no" | "false" | "0" => Some(Value::Boolean(false)),
            _ => None,
        },
    }
}

/// A number, also one with a factor of bytes such as `10G`, `64kb` or `16MB`.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let factor = match suffix.to_ascii_lowercase().trim_end_matches('b') {
        "" => 1.0,
        "k" => 1_024.0,
        "m" => 1_048_576.0,
        "g" => 1_073_741_824.0,
        "t" => 1_099_511_627_776.0,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_factors() {
        let cases =
            [("151", 151.0), ("0.000000", 0.0), ("-1", -1.0), ("10G", 10_737_418_240.0), ("64kb", 65_536.0)];
        for (text, expected) in cases {
            assert_eq!(number(text), Some(expected), "{text}");
        }
        assert_eq!(["", "ON", "5x", "k"].map(number), [None; 4]);
    }

    #[test]
    fn the_unit_says_what_a_text_is() {
        assert_eq!(setting("ON", Unit::Text), Some("ON".into()));
        assert_eq!(setting("ON", Unit::Boolean), Some(true.into()));
        assert_eq!(setting("ON", Unit::Count), None);
    }
}
