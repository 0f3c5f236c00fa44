//! Values as OpenTSDB reads them: a text without `.`, `e` and `E` is a 64-bit integer, any other a 64-bit float.

use super::refusal::Refusal;

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Exact.
    I64(i64),
    /// Finite.
    F64(f64),
}

/// The value of a text, without the blanks that Java's parser would skip.
///
/// # Errors
/// For a text that is not a decimal number, an integer beyond 64 bits, NaN, and a number beyond the range of f64.
pub(in crate::opentsdb) fn parse_number(text: &str) -> Result<Number, Refusal> {
    if !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return text.parse().map(Number::I64).map_err(|_| Refusal::not_a_number());
    }
    parse_float(text)
}

/// The value of the text of a float. Rust reads more texts than decimal numbers: `inf`, `infinity`, `nan`.
fn parse_float(text: &str) -> Result<Number, Refusal> {
    let is_decimal = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    match text.parse::<f64>() {
        Ok(number) if is_decimal && number.is_finite() => Ok(Number::F64(number)),
        Ok(number) if is_decimal => Err(Refusal::not_finite(number)),
        _ => Err(Refusal::not_a_number()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::refusal::RefusalKind;
    use super::*;

    #[test]
    fn the_characters_of_a_value_determine_its_type() {
        assert_eq!(parse_number("42"), Ok(Number::I64(42)));
        assert_eq!(parse_number("+42"), Ok(Number::I64(42)));
        assert_eq!(parse_number("-9223372036854775808"), Ok(Number::I64(i64::MIN)));
        assert_eq!(parse_number("42.0"), Ok(Number::F64(42.0)));
        assert_eq!(parse_number("1e3"), Ok(Number::F64(1000.0)));
        assert_eq!(parse_number(".5"), Ok(Number::F64(0.5)));
        assert_eq!(parse_number("-1.5E-3"), Ok(Number::F64(-0.0015)));
    }

    #[test]
    fn what_is_not_a_finite_number_is_refused() {
        let kind = |text| parse_number(text).unwrap_err().kind;
        for text in [
            "NaN",
            "inf",
            "Infinity",
            "",
            "-",
            "+",
            "0x10",
            "9223372036854775808",
            "1.5f",
            "1e",
            " 1",
            "1.2.3",
        ] {
            assert_eq!(kind(text), RefusalKind::Value, "{text}");
        }
        assert_eq!(kind("1e400"), RefusalKind::NotFinite);
        assert_eq!(kind("-1e400"), RefusalKind::NotFinite);
    }
}
