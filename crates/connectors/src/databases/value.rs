//! Values of sensors as those of columns.

use model::Value;

/// A whole number; a fraction is cut off. Text is not a number.
pub(super) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(flag) => Some(i64::from(*flag)),
        Value::I64(number) => Some(*number),
        Value::F64(number) if number.is_finite() => Some(*number as i64),
        Value::F64(_) | Value::String(_) | Value::Json(_) => None,
    }
}

/// A number with a fraction.
pub(super) fn real(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::I64(number) => Some(*number as f64),
        // MySQL has no infinite numbers.
        Value::F64(number) => Some(*number).filter(|number| number.is_finite()),
        Value::String(_) | Value::Json(_) => None,
    }
}

/// A decimal number as a column of a database shows it. One that is not whole, or that 64 bits do not hold, is rounded.
pub(super) fn decimal(text: &str) -> Option<Value> {
    let whole = text.parse().ok().map(Value::I64);
    whole.or_else(|| text.parse().ok().and_then(finite))
}

/// A number that is neither infinite nor no number.
pub(super) fn finite(number: f64) -> Option<Value> {
    Some(number).filter(|number| number.is_finite()).map(Value::F64)
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::I64(number) => number.to_string(),
        Value::F64(number) => number.to_string(),
        // PostgreSQL has no text with a zero byte.
        Value::String(text) | Value::Json(text) => text.replace('\0', ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_those_of_their_columns() {
        assert_eq!(integer(&Value::F64(2.9)), Some(2));
        assert_eq!(integer(&Value::Bool(true)), Some(1));
        assert_eq!((integer(&Value::F64(f64::NAN)), real(&Value::F64(f64::INFINITY))), (None, None));
        assert_eq!(real(&Value::I64(3)), Some(3.0));
        assert_eq!(text(&Value::I64(3)), "3");
        assert_eq!(decimal("9007199254740993"), Some(Value::I64(9_007_199_254_740_993)));
        assert_eq!((decimal("-0.5"), decimal("NaN")), (Some(Value::F64(-0.5)), None));
        assert_eq!(text(&Value::String("a\0b".into())), "ab");
    }
}
