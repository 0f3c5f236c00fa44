//! Text forms of times in requests, answers and mails.

use model::Timestamp;

/// `2026-11-27T20:15:30.125Z`
pub(crate) fn iso(ms: i64) -> String {
    let [year, month, day, hour, minute, second] = parts(ms);
    let millis = ms.rem_euclid(1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// `27/11/2026 20:15:30`, rounded towards the past.
pub(crate) fn day_first(ms: i64) -> String {
    let [year, month, day, hour, minute, second] = parts(ms);
    format!("{day:02}/{month:02}/{year:04} {hour:02}:{minute:02}:{second:02}")
}

fn parts(ms: i64) -> [i64; 6] {
    let date = Timestamp::from_millis(ms).unwrap_or(Timestamp::MAX).date().to_string();
    let mut numbers = date.split('-').map(|part| part.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    let (year, month, day) = (next(), next(), next());
    let second = ms.div_euclid(1_000).rem_euclid(86_400);
    [year, month, day, second / 3_600, second / 60 % 60, second % 60]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_both_forms() {
        assert_eq!(iso(1_795_810_530_125), "2026-11-27T20:15:30.125Z");
        assert_eq!(day_first(1_795_810_530_999), "27/11/2026 20:15:30");
    }
}
