//! Intervals of the calendar: weeks, months and quarters in a time zone.
//!
//! The end of an interval is that of ThingsBoard (`TimeUtils.calculateIntervalEnd`): the start goes back to the beginning of its
//! day, then to the first day of its unit, then one unit on. Each step keeps the local time of day. A local time that clocks skip
//! becomes later by the skipped time. A local time that occurs twice keeps its offset from UTC if it can, and otherwise is the
//! first of both (`java.time.ZonedDateTime`).

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::timezone::Tz;
use chrono::{
    DateTime, Datelike, Months, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone as _,
};
use model::calendar::{LocalOffsets, local_offsets};

/// Names that ThingsBoard gives another meaning than the time zone database.
const THINGSBOARD_NAMES: [(&str, &str); 6] = [
    ("EST", "America/New_York"),
    ("GMT+0", "GMT"),
    ("GMT-0", "GMT"),
    ("HST", "US/Hawaii"),
    ("MST", "America/Phoenix"),
    ("ROC", "Asia/Taipei"),
];

/// A unit of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalendarUnit {
    /// A week that begins on Sunday.
    Week,
    /// A week that begins on Monday.
    WeekIso,
    /// A month.
    Month,
    /// A quarter, which begins in January, April, July or October.
    Quarter,
}

/// The time zone of a calendar.
#[derive(Debug, Clone)]
pub struct CalendarZone {
    zone: Tz,
    name: Arc<str>,
}

/// Intervals of one unit in a time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// The unit.
    pub unit: CalendarUnit,
    /// The time zone.
    pub zone: CalendarZone,
}

impl PartialEq for CalendarZone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for CalendarZone {}

impl Default for CalendarZone {
    fn default() -> Self {
        "UTC".parse().expect("BUG: UTC is a time zone")
    }
}

impl FromStr for CalendarZone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = match text {
            "Z" => "UTC",
            name => THINGSBOARD_NAMES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, zone)| zone),
        };
        let zone = name.parse().map_err(|_| {
            format!(
                "the time zone is {text:?}, which does not exist; use a name such as Europe/Berlin, UTC, or an offset such as +02:00"
            )
        })?;
        Ok(Self { zone, name: name.into() })
    }
}

impl CalendarUnit {
    /// The shortest length of the unit in microseconds.
    pub(super) const fn shortest_us(self) -> u64 {
        let days = match self {
            Self::Week | Self::WeekIso => 6,
            Self::Month => 27,
            Self::Quarter => 89,
        };
        days * 86_400 * 1_000_000
    }

    fn first_day(self, date: NaiveDate) -> Option<NaiveDate> {
        match self {
            Self::Week => back(date, date.weekday().num_days_from_sunday()),
            Self::WeekIso => back(date, date.weekday().num_days_from_monday()),
            Self::Month => date.with_day(1),
            Self::Quarter => date.with_day(1)?.with_month0(date.month0() / 3 * 3),
        }
    }

    fn next(self, date: NaiveDate) -> Option<NaiveDate> {
        match self {
            Self::Week | Self::WeekIso => date.checked_add_signed(TimeDelta::days(7)),
            Self::Month => date.checked_add_months(Months::new(1)),
            Self::Quarter => date.checked_add_months(Months::new(3)),
        }
    }
}

fn back(date: NaiveDate, days: u32) -> Option<NaiveDate> {
    date.checked_sub_signed(TimeDelta::days(days.into()))
}

impl Calendar {
    /// The end of the interval that has this time, in microseconds. `None` if the calendar does not reach so far.
    pub(super) fn end_of(&self, micros: i64) -> Option<i64> {
        let utc = DateTime::from_timestamp_micros(micros)?.naive_utc();
        let offset = self.zone.zone.offset_from_utc_datetime(&utc).fix();
        let local = utc.checked_add_offset(offset)?;
        let day = self.resolve(local.date().and_time(NaiveTime::MIN), offset.local_minus_utc())?;
        let first = self.on(day, self.unit.first_day(day.local.date())?)?;
        let end = self.on(first, self.unit.next(first.local.date())?)?;
        let end = end.local.checked_sub_signed(TimeDelta::seconds(end.offset_s.into()))?;
        Some(end.and_utc().timestamp_micros())
    }

    /// The same time of day on another date.
    fn on(&self, at: LocalTime, date: NaiveDate) -> Option<LocalTime> {
        self.resolve(date.and_time(at.local.time()), at.offset_s)
    }

    fn resolve(&self, local: NaiveDateTime, preferred_s: i32) -> Option<LocalTime> {
        Some(match local_offsets(&self.zone.zone, local)? {
            LocalOffsets::Twice(_, second) if second == preferred_s => LocalTime { local, offset_s: second },
            LocalOffsets::Once(first) | LocalOffsets::Twice(first, _) => LocalTime { local, offset_s: first },
            LocalOffsets::Never(before, after) => {
                let local = local.checked_add_signed(TimeDelta::seconds((after - before).into()))?;
                LocalTime { local, offset_s: after }
            }
        })
    }
}

/// A local time with its offset from UTC.
#[derive(Debug, Clone, Copy)]
struct LocalTime {
    local: NaiveDateTime,
    /// Seconds east of UTC.
    offset_s: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(unit: CalendarUnit, zone: &str, ms: i64) -> i64 {
        Calendar { unit, zone: zone.parse().unwrap() }.end_of(ms * 1_000).unwrap() / 1_000
    }

    fn utc(text: &str) -> i64 {
        text.parse::<NaiveDateTime>().unwrap().and_utc().timestamp_millis()
    }

    #[test]
    fn ends_are_those_of_thingsboard() {
        // Wednesday, 10 January 2024, 15:15:27 UTC.
        let wednesday = 1_704_899_727_000;
        for (unit, zone, expected) in [
            (CalendarUnit::Week, "Europe/Kyiv", 1_705_183_200_000),
            (CalendarUnit::WeekIso, "Europe/Kyiv", 1_705_269_600_000),
            (CalendarUnit::Week, "Europe/Amsterdam", 1_705_186_800_000),
            (CalendarUnit::WeekIso, "Europe/Amsterdam", 1_705_273_200_000),
            (CalendarUnit::Month, "UTC", utc("2024-02-01T00:00:00")),
            (CalendarUnit::Quarter, "UTC", utc("2024-04-01T00:00:00")),
            // The clocks of Berlin are put forward in March.
            (CalendarUnit::Quarter, "Europe/Berlin", utc("2024-03-31T22:00:00")),
        ] {
            assert_eq!(end(unit, zone, wednesday), expected, "{unit:?} {zone}");
        }
        // Sunday, 7 January 2024, 12:00 in Kyiv.
        assert_eq!(end(CalendarUnit::Week, "Europe/Kyiv", 1_704_621_600_000), 1_705_183_200_000);
        assert_eq!(end(CalendarUnit::WeekIso, "Europe/Kyiv", 1_704_621_600_000), utc("2024-01-07T22:00:00"));
    }

    #[test]
    fn the_last_moment_of_a_unit_and_the_first_of_the_next_one_are_apart() {
        let boundary = utc("2024-11-01T04:00:00");
        assert_eq!(end(CalendarUnit::Month, "America/New_York", boundary - 1), boundary);
        // Clocks are put back on 3 November.
        assert_eq!(end(CalendarUnit::Month, "America/New_York", boundary), utc("2024-12-01T05:00:00"));
    }

    #[test]
    fn a_midnight_that_clocks_skip_becomes_later() {
        // On Sunday, 4 November 2018, the clocks of São Paulo went from 00:00 to 01:00.
        let sunday = utc("2018-11-04T03:00:00");
        assert_eq!(end(CalendarUnit::Week, "America/Sao_Paulo", sunday - 1), sunday);
        // From 01:00 seven days on is 01:00.
        assert_eq!(end(CalendarUnit::Week, "America/Sao_Paulo", sunday), utc("2018-11-11T03:00:00"));
        // From Monday, the beginning of whose day exists, the way goes over the skipped midnight.
        assert_eq!(
            end(CalendarUnit::Week, "America/Sao_Paulo", sunday + 86_400_000),
            utc("2018-11-11T03:00:00")
        );
    }

    #[test]
    fn zones_have_the_names_of_thingsboard() {
        for (zone, same) in [("EST", "America/New_York"), ("Z", "UTC"), ("+02:00", "Etc/GMT-2")] {
            let at = utc("2024-07-15T00:00:00");
            assert_eq!(end(CalendarUnit::Month, zone, at), end(CalendarUnit::Month, same, at), "{zone}");
        }
        for wrong in ["Mars/Olympus", "", "Berlin"] {
            let refusal = wrong.parse::<CalendarZone>().unwrap_err();
            assert!(
                refusal.contains("does not exist") && refusal.contains(&format!("{wrong:?}")),
                "{refusal}"
            );
        }
    }

    #[test]
    fn the_calendar_ends_somewhere() {
        let calendar = Calendar { unit: CalendarUnit::Week, zone: CalendarZone::default() };
        assert_eq!((calendar.end_of(i64::MAX), calendar.end_of(i64::MIN)), (None, None));
    }
}
