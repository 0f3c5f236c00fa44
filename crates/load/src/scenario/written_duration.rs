//! The format of durations in scenarios and options.

use std::time::Duration;

/// The longest duration: a year. A 64-bit clock in nanoseconds covers 584.
const DURATION_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Parses `60s`, `500ms`, `2m`, `1h`; a bare number is seconds. At most a year.
pub fn parse_duration(text: &str) -> std::result::Result<Duration, String> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let per_unit = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        other => return Err(format!("`{other}` is not a unit of time; use ms, s, m or h")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a duration; write it like 60s"))?;
    let duration = Duration::try_from_secs_f64(number * per_unit).ok();
    duration.filter(|it| *it <= DURATION_MAX).ok_or_else(|| format!("`{text}` is longer than a year"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, ms) in
            [("60s", 60_000), ("60", 60_000), ("500ms", 500), ("1.5m", 90_000), ("1h", 3_600_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in
            ["", "s", "60x", "-1s", "1.2.3s", "1e9h", "1e30s", "nan", "inf", "NaN", "99999999h", "1e400"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
