//! Units of parameters, counters and facts.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::{Value, ValueKind};

/// The unit of a number, or the kind of a value that has no unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Bytes,
    /// 1,024 bytes.
    Kibibytes,
    /// 1,048,576 bytes.
    Mebibytes,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// A number of things.
    Count,
    /// A hundredth.
    Percent,
    /// A part of 1.
    Ratio,
    /// True or false.
    Boolean,
    /// A text, such as a choice between modes.
    Text,
}

impl Unit {
    /// The kind of the values in this unit.
    pub fn kind(self) -> ValueKind {
        match self {
            Self::Boolean => ValueKind::Boolean,
            Self::Text => ValueKind::Text,
            _ => ValueKind::Number,
        }
    }

    /// The bytes of one unit, if the unit measures bytes.
    fn bytes(self) -> Option<f64> {
        match self {
            Self::Bytes => Some(1.0),
            Self::Kibibytes => Some(1_024.0),
            Self::Mebibytes => Some(1_048_576.0),
            _ => None,
        }
    }

    /// Formats a value for people.
    pub fn format(self, value: &Value) -> String {
        let Value::Number(number) = value else { return value.to_string() };
        if let Some(bytes) = self.bytes() {
            return format_bytes(number * bytes);
        }
        let suffix = match self {
            Self::Seconds => " s",
            Self::Milliseconds => " ms",
            Self::Microseconds => " us",
            Self::Percent => " %",
            _ => "",
        };
        format!("{}{suffix}", format_number(*number))
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Kibibytes => "KiB",
            Self::Mebibytes => "MiB",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Count => "count",
            Self::Percent => "%",
            Self::Ratio => "ratio",
            Self::Boolean => "true or false",
            Self::Text => "text",
        })
    }
}

/// Formats a number: whole, or with up to three decimals; very large ones with an exponent.
pub(crate) fn format_number(number: f64) -> String {
    if number.abs() >= 1e15 {
        return format!("{number:.1e}");
    }
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn format_bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes, 0);
    while size.abs() >= 1_024.0 && unit + 1 < UNITS.len() {
        size /= 1_024.0;
        unit += 1;
    }
    let text = format!("{size:.1}");
    format!("{} {}", text.strip_suffix(".0").unwrap_or(&text), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_formatted_with_their_unit() {
        let text = |unit: Unit, number: f64| unit.format(&Value::from(number));
        assert_eq!(text(Unit::Bytes, 134_217_728.0), "128 MiB");
        assert_eq!(text(Unit::Bytes, 1_610_612_736.0), "1.5 GiB");
        assert_eq!(text(Unit::Kibibytes, 4_096.0), "4 MiB");
        assert_eq!(text(Unit::Milliseconds, 30.5), "30.5 ms");
        assert_eq!(text(Unit::Count, 4_096.0), "4096");
        assert_eq!(text(Unit::Count, 9.3e18), "9.3e18");
        assert_eq!(text(Unit::Percent, 20.0), "20 %");
        assert_eq!(Unit::Text.format(&Value::from("ROW")), "ROW");
    }
}
