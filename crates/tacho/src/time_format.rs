//! How commands print times: RFC 3339 in UTC. A number that is not a time of the calendar is printed with its unit.

use jiff::Timestamp;

/// The pattern of a time in whole seconds.
pub(crate) const WHOLE_SECONDS: &str = "%Y-%m-%dT%H:%M:%SZ";

/// A time in whole seconds, from milliseconds since 1970.
pub(crate) fn seconds_of_millis(millis: i64) -> String {
    let time = Timestamp::from_millisecond(millis);
    time.map_or_else(|_| format!("{millis} ms"), |time| time.strftime(WHOLE_SECONDS).to_string())
}

/// A time in whole seconds, from microseconds since 1970.
pub(crate) fn seconds_of_micros(micros: i64) -> String {
    let time = Timestamp::from_microsecond(micros);
    time.map_or_else(|_| format!("{micros} us"), |time| time.strftime(WHOLE_SECONDS).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_given_decimal_places() {
        assert_eq!(seconds_of_millis(1_700_000_000_999), "2023-11-14T22:13:20Z");
        assert_eq!(seconds_of_micros(1_700_000_000_999_999), "2023-11-14T22:13:20Z");
        assert_eq!(seconds_of_millis(i64::MAX), format!("{} ms", i64::MAX));
    }
}
