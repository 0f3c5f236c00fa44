//! Local times of a time zone: times without an offset from UTC.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::timezone::Tz;
use chrono::DateTime;
use model::calendar::{LocalOffsets, local_offsets};

const SECOND_US: i64 = 1_000_000;

/// The rule for a local time that is ambiguous (clocks are set back) or skipped (clocks are set forward).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClockChange {
    /// Refuse it: the time needs an offset.
    #[default]
    Refuse,
    /// The earlier of the two possible times.
    Earlier,
    /// The later of the two possible times.
    Later,
}

impl FromStr for ClockChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "refuse" => Ok(Self::Refuse),
            "earlier" => Ok(Self::Earlier),
            "later" => Ok(Self::Later),
            other => Err(format!("\"{other}\" is not one of refuse, earlier, later")),
        }
    }
}

/// The time zone of local times.
#[derive(Debug, Clone)]
pub struct Zone {
    zone: Tz,
    /// As the user wrote it.
    name: Arc<str>,
    clock_change: ClockChange,
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = if text.eq_ignore_ascii_case("z") { "UTC" } else { text };
        let zone = name.parse().map_err(|_| {
            format!("\"{text}\" is not a time zone; use UTC, an offset such as +02:00 or a name such as Europe/Berlin")
        })?;
        Ok(Self { zone, name: name.into(), clock_change: ClockChange::default() })
    }
}

/// The moment of a local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Microseconds since 1970, UTC.
    pub micros: i64,
    /// Whether the local time was ambiguous or skipped, and [`ClockChange`] decided.
    pub is_chosen: bool,
}

/// A local time without a unique moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocalTimeError {
    /// It is ambiguous or skipped.
    #[error("{0}")]
    ClockChange(String),
    /// Its moment cannot be represented.
    #[error("the time cannot be represented")]
    OutOfRange,
}

impl Zone {
    /// The zone with another rule for ambiguous and skipped local times.
    #[must_use]
    pub fn with_clock_change(self, clock_change: ClockChange) -> Self {
        Self { clock_change, ..self }
    }

    /// Whether the zone has one fixed offset.
    pub fn is_fixed(&self) -> bool {
        self.name.starts_with(['+', '-']) || self.name.eq_ignore_ascii_case("utc")
    }

    /// The moment of a local time, which is given in microseconds as if it were UTC.
    ///
    /// # Errors
    /// The time is ambiguous or skipped and the rule is [`ClockChange::Refuse`], or it cannot be represented.
    pub fn moment(&self, local_us: i64) -> Result<Moment, LocalTimeError> {
        let local = DateTime::from_timestamp_micros(local_us).ok_or(LocalTimeError::OutOfRange)?.naive_utc();
        let (earlier, later, reason) =
            match local_offsets(&self.zone, local).ok_or(LocalTimeError::OutOfRange)? {
                LocalOffsets::Once(offset) => {
                    return Ok(Moment { micros: minus(local_us, offset)?, is_chosen: false });
                }
                LocalOffsets::Twice(first, second) => (first, second, ["was twice", "clocks were put back"]),
                // The time with the offset after the change is earlier than with the offset before it.
                LocalOffsets::Never(before, after) => {
                    (after, before, ["does not exist", "clocks were put forward over it"])
                }
            };
        let chosen = match self.clock_change {
            ClockChange::Refuse => {
                let [what, why] = reason;
                let local = local.format("%Y-%m-%dT%H:%M:%S%.f");
                return Err(LocalTimeError::ClockChange(format!("{local} {what} in {}: {why}", self.name)));
            }
            ClockChange::Earlier => earlier,
            ClockChange::Later => later,
        };
        Ok(Moment { micros: minus(local_us, chosen)?, is_chosen: true })
    }
}

fn minus(local_us: i64, offset_s: i32) -> Result<i64, LocalTimeError> {
    local_us.checked_sub(i64::from(offset_s) * SECOND_US).ok_or(LocalTimeError::OutOfRange)
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDateTime;

    use super::*;

    fn micros(text: &str) -> i64 {
        text.parse::<NaiveDateTime>().unwrap().and_utc().timestamp_micros()
    }

    fn utc(zone: &str, change: &str, local: &str) -> Result<(String, bool), String> {
        let zone: Zone = zone.parse().unwrap();
        let moment = zone.with_clock_change(change.parse().unwrap()).moment(micros(local));
        let shown = |us| DateTime::from_timestamp_micros(us).unwrap().format("%Y-%m-%dT%H:%M:%S").to_string();
        moment.map(|moment| (shown(moment.micros), moment.is_chosen)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_unambiguous_local_time_needs_no_choice() {
        for (zone, local, expected) in [
            ("Europe/Berlin", "2024-05-01T10:00:00", "2024-05-01T08:00:00"),
            ("Europe/Berlin", "2024-10-27T03:00:00", "2024-10-27T02:00:00"),
            ("+02:00", "2024-05-01T10:00:00", "2024-05-01T08:00:00"),
            ("z", "2024-05-01T08:00:00", "2024-05-01T08:00:00"),
        ] {
            for change in ["refuse", "earlier", "later"] {
                assert_eq!(utc(zone, change, local), Ok((expected.to_owned(), false)), "{zone} {local}");
            }
        }
    }

    #[test]
    fn an_ambiguous_or_missing_local_time_follows_the_choice() {
        for (zone, local, earlier, later, reason) in [
            (
                "Europe/Berlin",
                "2024-10-27T02:30:00",
                "2024-10-27T00:30:00",
                "2024-10-27T01:30:00",
                "was twice in Europe/Berlin",
            ),
            (
                "Europe/Berlin",
                "2024-03-31T02:30:00",
                "2024-03-31T00:30:00",
                "2024-03-31T01:30:00",
                "does not exist in Europe/Berlin",
            ),
            (
                "America/New_York",
                "2024-11-03T01:00:00",
                "2024-11-03T05:00:00",
                "2024-11-03T06:00:00",
                "was twice",
            ),
            // A whole day was left out.
            (
                "Pacific/Apia",
                "2011-12-30T12:00:00",
                "2011-12-29T22:00:00",
                "2011-12-30T22:00:00",
                "does not exist",
            ),
        ] {
            assert_eq!(utc(zone, "earlier", local), Ok((earlier.to_owned(), true)), "{zone} {local}");
            assert_eq!(utc(zone, "later", local), Ok((later.to_owned(), true)), "{zone} {local}");
            let refusal = utc(zone, "refuse", local).unwrap_err();
            assert!(refusal.contains(reason) && refusal.contains(local), "{refusal}");
        }
    }

    #[test]
    fn unknown_zones_and_times_out_of_range_are_errors() {
        assert!("Berlin".parse::<Zone>().unwrap_err().contains("Europe/Berlin"));
        let zone: Zone = "Europe/Berlin".parse().unwrap();
        assert_eq!(zone.moment(i64::MAX), Err(LocalTimeError::OutOfRange));
        assert!(!zone.is_fixed() && "UTC".parse::<Zone>().unwrap().is_fixed());
        assert!("+02:00".parse::<Zone>().unwrap().is_fixed());
        assert!("x".parse::<ClockChange>().is_err());
    }
}
