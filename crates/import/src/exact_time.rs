//! How reports print times: RFC 3339 in UTC. A number that is no time of the calendar is printed with its unit.

use jiff::Timestamp;

/// A time with its decimal places, from microseconds since 1970.
pub(crate) fn exact_of_micros(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| format!("{micros} us"), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_decimal_places() {
        assert_eq!(exact_of_micros(1_700_000_000_250_000), "2023-11-14T22:13:20.25Z");
        assert_eq!(exact_of_micros(0), "1970-01-01T00:00:00Z");
        assert_eq!(exact_of_micros(i64::MIN), format!("{} us", i64::MIN));
    }
}
