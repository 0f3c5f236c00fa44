//! Quantities as Elasticsearch writes them: `30s`, `512mb`.
//!
//! Source: Elasticsearch documentation, API conventions, time units and byte size units.

use crate::value::Value;

/// The seconds of a time such as `500ms`, `1m` or `-1`.
pub(super) fn seconds(text: &str) -> Option<Value> {
    let units = [
        ("nanos", 1e-9),
        ("micros", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3_600.0),
        ("d", 86_400.0),
    ];
    quantity(text, &units)
}

/// The bytes of a size such as `512mb`.
pub(super) fn bytes(text: &str) -> Option<Value> {
    let factor = |power: i32| 1_024_f64.powi(power);
    let units = [
        ("pb", factor(5)),
        ("tb", factor(4)),
        ("gb", factor(3)),
        ("mb", factor(2)),
        ("kb", factor(1)),
        ("p", factor(5)),
        ("t", factor(4)),
        ("g", factor(3)),
        ("m", factor(2)),
        ("k", factor(1)),
        ("b", 1.0),
    ];
    quantity(text, &units)
}

/// A number with one of these units. A number without a unit is -1 (switched off) or 0.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<Value> {
    let text = text.trim().to_ascii_lowercase();
    if let Ok(number) = text.parse::<f64>() {
        return (number == 0.0 || number == -1.0).then_some(Value::Number(number));
    }
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    let number: f64 = number.trim().parse().ok()?;
    number.is_finite().then_some(Value::Number(number * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read() {
        let time = |text: &str| seconds(text);
        assert_eq!(
            ["30s", "500ms", "1m", "-1", "0"].map(time),
            [30.0, 0.5, 60.0, -1.0, 0.0].map(|n| Some(n.into()))
        );
        let size = |text: &str| bytes(text);
        assert_eq!(
            ["512mb", "1gb", "2KB", "7b"].map(size),
            [512.0 * 1_048_576.0, 1_073_741_824.0, 2_048.0, 7.0].map(|n| Some(n.into()))
        );
        assert_eq!(["", "10%", "s", "fast", "30"].map(time), [const { None }; 5]);
    }
}
