//! Local times: what the clocks of a zone show, without the offset from UTC that would say when that was.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::timezone::Tz;
use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeDelta, TimeZone};

const SECOND_US: i64 = 1_000_000;

/// What a local time means that clocks show twice, because they are put back, or skip, because they are put forward.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClockChange {
    /// Nothing: only an offset tells when it was.
    #[default]
    Refuse,
    /// The earlier of the two times that it can be.
    Earlier,
    /// The later of them.
    Later,
}

impl FromStr for ClockChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "refuse" => Ok(Self::Refuse),
            "earlier" => Ok(Self::Earlier),
            "later" => Ok(Self::Later),
            other => Err(format!("\"{other}\" is none of refuse, earlier, later")),
        }
    }
}

/// Where local times were written.
#[derive(Debug, Clone)]
pub struct Zone {
    zone: Tz,
    /// As it was said.
    name: Arc<str>,
    clock_change: ClockChange,
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = if text.eq_ignore_ascii_case("z") { "UTC" } else { text };
        let zone = name.parse().map_err(|_| {
            format!("\"{text}\" is no time zone; use UTC, an offset such as +02:00 or a name such as Europe/Berlin")
        })?;
        Ok(Self { zone, name: name.into(), clock_change: ClockChange::default() })
    }
}

/// When a local time was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Microseconds since 1970, UTC.
    pub micros: i64,
    /// Whether the local time came twice or never, and [`ClockChange`] decided.
    pub is_chosen: bool,
}

/// Why a local time says no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocalTimeError {
    /// It comes twice or never.
    #[error("{0}")]
    ClockChange(String),
    /// Its moment is beyond what can be represented.
    #[error("the time cannot be represented")]
    OutOfRange,
}

impl Zone {
    /// The zone with another answer to local times that come twice or never.
    #[must_use]
    pub fn with_clock_change(self, clock_change: ClockChange) -> Self {
        Self { clock_change, ..self }
    }

    /// Whether the zone is one offset for good, so that its clocks are never changed.
    pub fn is_fixed(&self) -> bool {
        self.name.starts_with(['+', '-']) || self.name.eq_ignore_ascii_case("utc")
    }

    /// When clocks of the zone show a time, which is given in microseconds as if it were UTC.
    ///
    /// # Errors
    /// When clocks show it twice or never and [`ClockChange::Refuse`] is what to do, and when it is too far away.
    pub fn moment(&self, local_us: i64) -> Result<Moment, LocalTimeError> {
        let local = DateTime::from_timestamp_micros(local_us).ok_or(LocalTimeError::OutOfRange)?.naive_utc();
        let offset = |offset: &<Tz as TimeZone>::Offset| i64::from(offset.fix().local_minus_utc());
        let (earlier, later, reason) = match self.zone.offset_from_local_datetime(&local) {
            MappedLocalTime::Single(only) => {
                return Ok(Moment { micros: minus(local_us, offset(&only))?, is_chosen: false });
            }
            MappedLocalTime::Ambiguous(first, second) => {
                (offset(&first), offset(&second), ["was twice", "clocks were put back"])
            }
            // With the offset after the change it was earlier than with the one before.
            MappedLocalTime::None => (
                offset(&self.zone.offset_from_utc_datetime(&shifted(local, 1)?)),
                offset(&self.zone.offset_from_utc_datetime(&shifted(local, -1)?)),
                ["does not exist", "clocks were put forward over it"],
            ),
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

fn minus(local_us: i64, offset_s: i64) -> Result<i64, LocalTimeError> {
    local_us.checked_sub(offset_s * SECOND_US).ok_or(LocalTimeError::OutOfRange)
}

/// A time so many days away: clocks are not changed twice in two days.
fn shifted(local: NaiveDateTime, days: i64) -> Result<NaiveDateTime, LocalTimeError> {
    local.checked_add_signed(TimeDelta::days(days)).ok_or(LocalTimeError::OutOfRange)
}

#[cfg(test)]
mod tests {
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
    fn a_local_time_that_comes_once_needs_no_choice() {
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
    fn a_local_time_that_comes_twice_or_never_is_what_was_chosen() {
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
    fn what_is_no_zone_and_what_is_too_far_away_are_errors() {
        assert!("Berlin".parse::<Zone>().unwrap_err().contains("Europe/Berlin"));
        let zone: Zone = "Europe/Berlin".parse().unwrap();
        assert_eq!(zone.moment(i64::MAX), Err(LocalTimeError::OutOfRange));
        assert!(!zone.is_fixed() && "UTC".parse::<Zone>().unwrap().is_fixed());
        assert!("+02:00".parse::<Zone>().unwrap().is_fixed());
        assert!("x".parse::<ClockChange>().is_err());
    }
}
