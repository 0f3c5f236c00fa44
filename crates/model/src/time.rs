//! Points in time and ranges of it.

use std::fmt;
use std::time::Duration;

/// Microseconds since 1970-01-01T00:00:00Z, leap seconds ignored, negative before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The smallest representable time.
    pub const MIN: Self = Self(i64::MIN);
    /// The largest representable time.
    pub const MAX: Self = Self(i64::MAX);

    /// From microseconds since the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// From milliseconds since the epoch; `None` if the product does not fit.
    pub const fn from_millis(millis: i64) -> Option<Self> {
        match millis.checked_mul(1_000) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since the epoch, rounded towards the past.
    #[inline]
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// This time moved by `micros`, saturating at the ends of the range.
    pub const fn saturating_add_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}

/// A half-open range of time: `start <= ts < end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// The first time inside.
    pub start: Timestamp,
    /// The first time after the range.
    pub end: Timestamp,
}

impl TimeRange {
    /// All times except the last microsecond.
    pub const ALL: Self = Self { start: Timestamp::MIN, end: Timestamp::MAX };

    /// A range; it is empty if `end <= start`.
    pub const fn new(start: Timestamp, end: Timestamp) -> Self {
        Self { start, end }
    }

    /// Whether `ts` lies inside.
    pub fn contains(&self, ts: Timestamp) -> bool {
        self.start <= ts && ts < self.end
    }

    /// Whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// Whether the ranges have a time in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end && !self.is_empty() && !other.is_empty()
    }
}

/// A duration as a whole number of the largest possible unit: `90d`, `36h`, `90s`, `250ms`, `7us`. Fractions of a microsecond
/// are cut off.
pub fn shown_duration(duration: Duration) -> String {
    const UNITS: [(u128, &str); 5] =
        [(86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "m"), (1_000_000, "s"), (1_000, "ms")];
    let micros = duration.as_micros();
    match UNITS.into_iter().find(|(unit, _)| micros > 0 && micros.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", micros / unit),
        None if micros == 0 => "0s".to_owned(),
        None => format!("{micros}us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_before_the_epoch_round_towards_the_past() {
        assert_eq!(Timestamp::from_micros(-1).millis(), -1);
        assert_eq!(Timestamp::from_micros(1_999).millis(), 1);
        assert_eq!(Timestamp::from_millis(i64::MAX), None);
    }

    #[test]
    fn durations_are_whole_numbers_of_the_largest_unit() {
        let shown = |micros| shown_duration(Duration::from_micros(micros));
        for (micros, text) in [
            (0, "0s"),
            (7, "7us"),
            (250_000, "250ms"),
            (1_500_000, "1500ms"),
            (90_000_000, "90s"),
            (300_000_000, "5m"),
            (3_600_000_000, "1h"),
            (36 * 3_600_000_000, "36h"),
            (90 * 86_400_000_000, "90d"),
        ] {
            assert_eq!(shown(micros), text);
        }
    }

    #[test]
    fn ranges_are_half_open() {
        let at = Timestamp::from_micros;
        let range = TimeRange::new(at(10), at(20));
        assert!(range.contains(at(10)) && range.contains(at(19)));
        assert!(!range.contains(at(20)) && !range.contains(at(9)));
        assert!(range.overlaps(&TimeRange::new(at(19), at(30))));
        assert!(!range.overlaps(&TimeRange::new(at(20), at(30))));
        assert!(TimeRange::new(at(5), at(5)).is_empty());
    }
}
