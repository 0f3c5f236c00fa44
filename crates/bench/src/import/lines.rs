//! Finding numbers in the lines that tools print for people.

/// What follows `label` in the first line that begins with it, spaces aside.
pub(super) fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim().strip_prefix(label)).map(str::trim)
}

/// The first number after `label`; a unit that stands on it is left out.
pub(super) fn number(text: &str, label: &str) -> Option<f64> {
    leading_number(after(text, label)?)
}

/// The number a text begins with.
pub(super) fn leading_number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().ok()
}

/// A time with its unit, `1.40ms`, in microseconds.
pub(super) fn micros(text: &str) -> Option<f64> {
    let number = leading_number(text)?;
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let factor = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        "h" => 3_600e6,
        _ => return None,
    };
    // 4.02 ms are 4,020 us and not a little less.
    Some((number * factor * 1e3).round() / 1e3)
}

/// Bytes with a binary prefix as wrk prints them, `433.25KB`.
pub(super) fn bytes(text: &str) -> Option<f64> {
    let number = leading_number(text)?;
    let factor = match text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "B" => 1.0,
        "KB" => 1_024.0,
        "MB" => 1_048_576.0,
        "GB" => 1_073_741_824.0,
        "TB" => 1_099_511_627_776.0,
        _ => return None,
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_units_and_labels() {
        assert_eq!(number("a\n  total time:     5.0061s\n", "total time:"), Some(5.0061));
        assert_eq!(
            (micros("718.97us"), micros("8.03ms"), micros("2.5s"), micros("1.00m")),
            (Some(718.97), Some(8_030.0), Some(2.5e6), Some(6e7))
        );
        assert_eq!(micros("5"), None);
        assert_eq!((bytes("1.00KB"), bytes("7")), (Some(1_024.0), None));
    }
}
