//! Intervals of a time range.

use std::ops::Range;
use std::sync::Arc;

use model::{TimeRange, Timestamp};

use super::calendar::Calendar;
use super::limits::CALENDAR_INTERVALS_MAX;
use super::request::{HistoryError, Interval, check_to};

/// Rows of one interval.
pub(super) type Run = (u64, Range<usize>);

/// The intervals of a range, counted from its start. The length of a range in microseconds can exceed an `i64`.
#[derive(Debug, Clone)]
pub(super) struct Intervals {
    range: TimeRange,
    span_us: u64,
    ends: Ends,
}

/// The ends of intervals.
#[derive(Debug, Clone)]
enum Ends {
    /// Each interval has this length; the last one may be shorter.
    Every(u64),
    /// Microseconds after the start of the range, ascending. The last one is the length of the range.
    At(Arc<[u64]>),
}

impl Intervals {
    /// # Errors
    /// The calendar has more intervals in the range than [`CALENDAR_INTERVALS_MAX`], or does not reach the range.
    pub(super) fn new(range: TimeRange, interval: &Interval) -> Result<Self, HistoryError> {
        let span_us = if range.is_empty() { 0 } else { range.end.micros().abs_diff(range.start.micros()) };
        let ends = match interval {
            Interval::WholeRange => Ends::Every(span_us.max(1)),
            Interval::Length(length_us) => Ends::Every(length_us.get().min(span_us.max(1))),
            Interval::Calendar(calendar) => Ends::At(calendar_ends(range, span_us, calendar)?.into()),
        };
        Ok(Self { range, span_us, ends })
    }

    pub(super) fn count(&self) -> u64 {
        match &self.ends {
            Ends::Every(length_us) => self.span_us.div_ceil(*length_us),
            Ends::At(ends) => ends.len() as u64,
        }
    }

    /// The time `offset_us` after the start of the range.
    fn at(&self, offset_us: u64) -> i64 {
        self.range.start.micros().wrapping_add_unsigned(offset_us)
    }

    fn start_offset_us(&self, index: u64) -> u64 {
        match &self.ends {
            Ends::Every(length_us) => index * length_us,
            Ends::At(ends) => index.checked_sub(1).map_or(0, |before| ends[before as usize]),
        }
    }

    fn end_offset_us(&self, index: u64) -> u64 {
        match &self.ends {
            Ends::Every(length_us) => (index * length_us).saturating_add(*length_us).min(self.span_us),
            Ends::At(ends) => ends[index as usize],
        }
    }

    /// The interval that has the time `offset_us` after the start of the range.
    fn index_at(&self, offset_us: u64) -> u64 {
        match &self.ends {
            Ends::Every(length_us) => offset_us / length_us,
            Ends::At(ends) => ends.partition_point(|end| *end <= offset_us) as u64,
        }
    }

    pub(super) fn middle(&self, index: u64) -> Timestamp {
        let (start_us, end_us) = (self.start_offset_us(index), self.end_offset_us(index));
        Timestamp::from_micros(self.at(start_us + (end_us - start_us) / 2))
    }

    /// Splits ascending times into runs of one interval each. All times must be in the range.
    pub(super) fn cut(&self, times: &[i64], runs: &mut Vec<Run>) {
        runs.clear();
        let (mut begin, mut length) = (0, 1);
        while let Some(ts) = times.get(begin) {
            let offset_us = ts.abs_diff(self.range.start.micros());
            assert!(offset_us < self.span_us, "BUG: a row outside of the range that was asked for");
            let index = self.index_at(offset_us);
            let end = self.at(self.end_offset_us(index));
            length = length_below(&times[begin..], end, length);
            runs.push((index, begin..begin + length));
            begin += length;
        }
    }
}

/// The ends of the intervals of a calendar. The first and the last interval end with the range, as in ThingsBoard.
fn calendar_ends(range: TimeRange, span_us: u64, calendar: &Calendar) -> Result<Vec<u64>, HistoryError> {
    check_to(
        CALENDAR_INTERVALS_MAX,
        "the number of weeks, months or quarters in the range",
        span_us / calendar.unit.shortest_us(),
        "ask for a shorter range or a longer unit",
    )?;
    let (mut ends, mut at) = (Vec::new(), range.start.micros());
    while at < range.end.micros() {
        let end = calendar.end_of(at).ok_or(HistoryError::NoCalendar)?;
        // Each interval has a time at least, whatever the zone does.
        at = end.max(at.saturating_add(1)).min(range.end.micros());
        ends.push(at.abs_diff(range.start.micros()));
    }
    Ok(ends)
}

/// Number of ascending times before `end`. It tries `guess` first: most intervals have as many rows as the one before.
fn length_below(times: &[i64], end: i64, guess: usize) -> usize {
    let is_below = |at: usize| times.get(at).is_some_and(|ts| *ts < end);
    if is_below(guess - 1) && !is_below(guess) {
        return guess;
    }
    times.partition_point(|ts| *ts < end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::calendar::CalendarUnit;
    use super::*;

    fn every(range: TimeRange, interval_us: i64) -> Intervals {
        Intervals::new(range, &Interval::of_micros(interval_us)).unwrap()
    }

    fn calendar(unit: CalendarUnit, zone: &str) -> Interval {
        Interval::Calendar(Calendar { unit, zone: zone.parse().unwrap() })
    }

    fn range_of(start: &str, end: &str) -> TimeRange {
        let at = |text: &str| {
            let utc = text.parse::<chrono::NaiveDateTime>().unwrap().and_utc();
            Timestamp::from_micros(utc.timestamp_micros())
        };
        TimeRange::new(at(start), at(end))
    }

    #[test]
    fn a_calendar_cuts_the_range_at_its_boundaries() {
        // March, April and a part of May in Berlin; the clocks are put forward on 31 March.
        let range = range_of("2024-03-10T12:00:00", "2024-05-02T00:00:00");
        let intervals = Intervals::new(range, &calendar(CalendarUnit::Month, "Europe/Berlin")).unwrap();
        let at = |text: &str| range_of(text, text).start.micros();
        let [april, may] = [at("2024-03-31T22:00:00"), at("2024-04-30T22:00:00")];
        assert_eq!(intervals.count(), 3);
        let middles: Vec<i64> = (0..3).map(|index| intervals.middle(index).micros()).collect();
        let middle = |start: i64, end: i64| start + (end - start) / 2;
        let (start, end) = (range.start.micros(), range.end.micros());
        assert_eq!(middles, [middle(start, april), middle(april, may), middle(may, end)]);
        let mut runs = Vec::new();
        intervals.cut(&[start, april - 1, april, may - 1, may, end - 1], &mut runs);
        assert_eq!(runs, [(0, 0..2), (1, 2..4), (2, 4..6)]);
    }

    #[test]
    fn calendars_have_bounds() {
        let weeks = calendar(CalendarUnit::Week, "UTC");
        let ends = TimeRange::new(Timestamp::MIN, Timestamp::MAX);
        let refusal = Intervals::new(ends, &weeks).unwrap_err().to_string();
        assert!(refusal.contains("the limit is 10500"), "{refusal}");
        let last = TimeRange::new(Timestamp::from_micros(i64::MAX - 1), Timestamp::MAX);
        assert!(matches!(Intervals::new(last, &weeks), Err(HistoryError::NoCalendar)));
        assert_eq!(
            Intervals::new(TimeRange::new(Timestamp::MAX, Timestamp::MIN), &weeks).unwrap().count(),
            0
        );
    }

    /// The first moment after `at` at which the local date begins a unit, found hour by hour. Zones whose clocks change at
    /// midnight are left out: there a unit has no first moment at 00:00.
    fn naive_end(unit: CalendarUnit, zone: &str, at: i64) -> i64 {
        use chrono::{Datelike, TimeZone as _, Timelike, Weekday};
        const HOUR_US: i64 = 3_600_000_000;
        let zone: arrow_array::timezone::Tz = zone.parse().unwrap();
        let begins = |micros: i64| {
            let utc = chrono::DateTime::from_timestamp_micros(micros).unwrap().naive_utc();
            let local = zone.from_utc_datetime(&utc).naive_local();
            local.hour() == 0
                && match unit {
                    CalendarUnit::Week => local.weekday() == Weekday::Sun,
                    CalendarUnit::WeekIso => local.weekday() == Weekday::Mon,
                    CalendarUnit::Month => local.day() == 1,
                    CalendarUnit::Quarter => local.day() == 1 && local.month() % 3 == 1,
                }
        };
        let mut hour = at.div_euclid(HOUR_US) * HOUR_US + HOUR_US;
        while !begins(hour) {
            hour += HOUR_US;
        }
        hour
    }

    proptest! {
        #[test]
        fn calendar_intervals_are_those_of_a_naive_model(
            start_s in 1_000_000_000_i64..1_900_000_000,
            days in 1_i64..500,
            unit in prop::sample::select(vec![
                CalendarUnit::Week, CalendarUnit::WeekIso, CalendarUnit::Month, CalendarUnit::Quarter,
            ]),
            zone in prop::sample::select(vec![
                "UTC", "Europe/Berlin", "America/New_York", "Pacific/Auckland", "Asia/Tokyo", "-05:00",
            ]),
        ) {
            let (start, end) = (start_s * 1_000_000 + 7, (start_s + days * 86_400) * 1_000_000);
            let range = TimeRange::new(Timestamp::from_micros(start), Timestamp::from_micros(end));
            let intervals = Intervals::new(range, &calendar(unit, zone)).unwrap();
            let (mut at, mut expected) = (start, Vec::new());
            while at < end {
                let next = naive_end(unit, zone, at).min(end);
                expected.push(at + (next - at) / 2);
                at = next;
            }
            let middles: Vec<i64> =
                (0..intervals.count()).map(|index| intervals.middle(index).micros()).collect();
            prop_assert_eq!(middles, expected);
        }
    }

    #[test]
    fn ranges_longer_than_times_can_be_counted_have_their_intervals() {
        let year_us = 365 * 86_400_000_000;
        let intervals = every(TimeRange::new(Timestamp::MIN, Timestamp::from_micros(year_us)), year_us);
        assert_eq!(intervals.count(), (1 << 63) / year_us as u64 + 2);
        let times = [i64::MIN, i64::MIN + 1, -1, 0, year_us - 1];
        let mut runs = Vec::new();
        intervals.cut(&times, &mut runs);
        let whole = (1 << 63) / year_us as u64;
        assert_eq!(runs, [(0, 0..2), (whole, 2..4), (whole + 1, 4..5)]);
        let middles: Vec<i64> = runs.iter().map(|(index, _)| intervals.middle(*index).micros()).collect();
        assert!(middles.is_sorted() && middles[0] == i64::MIN + year_us / 2, "{middles:?}");
        let ends = TimeRange::new(Timestamp::MIN, Timestamp::MAX);
        assert_eq!(every(ends, i64::MAX).count(), 3);
    }

    #[test]
    fn a_wrong_guess_of_the_interval_changes_no_result() {
        let times = [-7, -7, 0, 1, 3, 3, 3, 8];
        for count in 1..=times.len() {
            for end in -9..10 {
                let expected = times[..count].iter().filter(|ts| **ts < end).count();
                for guess in 1..12 {
                    assert_eq!(length_below(&times[..count], end, guess), expected, "{count} {end} {guess}");
                }
            }
        }
    }
}
