//! Values as JSON texts and CSV, with the digits that InfluxDB gives them.

use std::io::Write as _;

use timeseries::influxql::{Head, Value, rfc3339};

use super::answer_format::Form;

/// Appends a text as JSON.
pub(super) fn json_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(&mut *out, text).expect("BUG: a text is always JSON");
}

/// Appends a value as JSON. Numbers that JSON does not have are null.
pub(super) fn json_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Int(number) => show(out, number),
        Value::Num(number) if !number.is_finite() => out.extend_from_slice(b"null"),
        Value::Num(number) => float(out, *number),
        Value::Bool(value) => show(out, value),
        Value::Str(text) => json_text(out, text),
    }
}

/// Appends a float: with an exponent only where it is very small or large, and without a point where it is whole.
fn float(out: &mut Vec<u8>, number: f64) {
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return show(out, number);
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => {
            show(out, format_args!("{digits}e+{exponent}"));
        }
        _ => out.extend_from_slice(text.as_bytes()),
    }
}

/// Appends the time of a row as JSON.
pub(super) fn json_time(out: &mut Vec<u8>, form: Form, head: &Head, nanos: i64) {
    match form.epoch {
        Some(unit) => show(out, nanos / unit),
        None => {
            out.push(b'"');
            out.extend_from_slice(rfc3339(nanos, head.zone).as_bytes());
            out.push(b'"');
        }
    }
}

/// Appends a field of a CSV record, in quotes where it needs them.
pub(super) fn csv_text(out: &mut Vec<u8>, text: &str) {
    let special = |byte: u8| matches!(byte, b',' | b'"' | b'\r' | b'\n');
    let quoted = text == "\\." || text.starts_with(char::is_whitespace) || text.bytes().any(special);
    match quoted {
        false => out.extend_from_slice(text.as_bytes()),
        true => show(out, format_args!("\"{}\"", text.replace('"', "\"\""))),
    }
}

/// Appends a value as a CSV field.
pub(super) fn csv_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => {}
        Value::Int(number) => show(out, number),
        Value::Num(number) => show(out, number),
        Value::Bool(value) => show(out, value),
        Value::Str(text) => csv_text(out, text),
    }
}

/// Appends the time of a row as a CSV field.
pub(super) fn csv_time(out: &mut Vec<u8>, form: Form, nanos: i64) {
    show(out, nanos / form.epoch.unwrap_or(1));
}

/// Appends what a value shows.
pub(super) fn show(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("BUG: memory takes every text");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: Value) -> String {
        let mut out = Vec::new();
        json_value(&mut out, &value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_have_the_digits_of_influxdb() {
        for (number, text) in [
            (1.0, "1"),
            (-0.5, "-0.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e300, "-1.5e+300"),
            (0.000_001, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(json(Value::Num(number)), text);
        }
        assert_eq!(json(Value::Int(i64::MIN)), "-9223372036854775808");
        assert_eq!(json(Value::text("a\"b\n")), r#""a\"b\n""#);
    }

    #[test]
    fn a_field_of_csv_has_quotes_where_it_needs_them() {
        let csv = |text: &str| {
            let mut out = Vec::new();
            csv_text(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(csv("a b"), "a b");
        assert_eq!(csv(" a"), "\" a\"");
        assert_eq!(csv("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
