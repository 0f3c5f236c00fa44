//! Numbers as Java writes them (`Double.toString`): ThingsBoard compares these texts and puts them into details of alarms.

/// From this size on a number has a decimal point and no exponent.
const DECIMAL_MIN: f64 = 1e-3;
/// From this size on a number has an exponent.
const DECIMAL_MAX: f64 = 1e7;

/// The text of a number. Its digits are the fewest that mean the same number, and at least one follows the point.
pub(super) fn text_of_double(number: f64) -> String {
    if number == 0.0 || (DECIMAL_MIN..DECIMAL_MAX).contains(&number.abs()) {
        return format!("{number:?}");
    }
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').expect("BUG: the form has an exponent");
    let fraction = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{fraction}E{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_java_writes_them() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (20.0, "20.0"),
            (-21.5, "-21.5"),
            (0.001, "0.001"),
            (0.000_999, "9.99E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (-12_345_678.9, "-1.23456789E7"),
            (1e21, "1.0E21"),
            (1e-10, "1.0E-10"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(text_of_double(number), text);
        }
    }
}
