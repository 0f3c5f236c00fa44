//! Units of times.

/// The unit of the times of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// The unit of a request that names none.
    #[default]
    Nanoseconds,
    /// `u`, `us` or `µ`.
    Microseconds,
    /// `ms`.
    Milliseconds,
    /// `s`.
    Seconds,
    /// `m`, only in version 1.
    Minutes,
    /// `h`, only in version 1.
    Hours,
}

impl Precision {
    /// The unit that a request of version 1 names.
    pub fn of_v1(name: &str) -> Option<Self> {
        Some(match name {
            "" | "n" | "ns" => Self::Nanoseconds,
            "u" | "us" | "\u{b5}" | "\u{b5}s" => Self::Microseconds,
            "ms" => Self::Milliseconds,
            "s" => Self::Seconds,
            "m" => Self::Minutes,
            "h" => Self::Hours,
            _ => return None,
        })
    }

    /// The unit that a request of version 2 names.
    pub fn of_v2(name: &str) -> Option<Self> {
        match name {
            "" | "ns" | "us" | "ms" | "s" => Self::of_v1(name),
            _ => None,
        }
    }

    /// Microseconds of a time in this unit, rounded towards the past; `None` if they do not fit.
    pub fn micros(self, time: i64) -> Option<i64> {
        let factor = match self {
            Self::Nanoseconds => return Some(time.div_euclid(1_000)),
            Self::Microseconds => 1,
            Self::Milliseconds => 1_000,
            Self::Seconds => 1_000_000,
            Self::Minutes => 60_000_000,
            Self::Hours => 3_600_000_000,
        };
        time.checked_mul(factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_name_their_units() {
        for (name, one, two) in [
            ("", Some(1), Some(1)),
            ("n", Some(1), None),
            ("ns", Some(1), Some(1)),
            ("u", Some(2_000), None),
            ("us", Some(2_000), Some(2_000)),
            ("\u{b5}", Some(2_000), None),
            ("ms", Some(2_000_000), Some(2_000_000)),
            ("s", Some(2_000_000_000), Some(2_000_000_000)),
            ("m", Some(120_000_000_000), None),
            ("h", Some(7_200_000_000_000), None),
            ("S", None, None),
            ("ps", None, None),
        ] {
            let micros = |precision: Precision| precision.micros(2_000).unwrap();
            assert_eq!(Precision::of_v1(name).map(micros), one.map(|n| if n == 1 { 2 } else { n }), "{name}");
            assert_eq!(Precision::of_v2(name).map(micros), two.map(|n| if n == 1 { 2 } else { n }), "{name}");
        }
    }

    #[test]
    fn times_are_rounded_to_the_past_and_never_wrap() {
        assert_eq!(Precision::Nanoseconds.micros(-1), Some(-1));
        assert_eq!(Precision::Nanoseconds.micros(1_999), Some(1));
        assert_eq!(Precision::Nanoseconds.micros(i64::MIN), Some(-9_223_372_036_854_776));
        assert_eq!(Precision::Hours.micros(i64::MAX), None);
        assert_eq!(Precision::Milliseconds.micros(i64::MIN / 1_000 - 1), None);
    }
}
