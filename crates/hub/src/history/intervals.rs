//! Intervals of a time range.

use std::ops::Range;

use model::{TimeRange, Timestamp};

/// Rows of one interval.
pub(super) type Run = (u64, Range<usize>);

/// The intervals of a range, counted from its start. The length of a range in microseconds can exceed an `i64`.
#[derive(Debug, Clone)]
pub(super) struct Intervals {
    range: TimeRange,
    span_us: u64,
    length_us: u64,
}

impl Intervals {
    /// If `interval_us` is not positive, the range is one interval.
    pub(super) fn new(range: TimeRange, interval_us: i64) -> Self {
        let span_us = if range.is_empty() { 0 } else { range.end.micros().abs_diff(range.start.micros()) };
        let length_us = u64::try_from(interval_us).ok().filter(|length_us| *length_us > 0);
        let length_us = length_us.map_or(span_us, |length_us| length_us.min(span_us)).max(1);
        Self { range, span_us, length_us }
    }

    pub(super) fn count(&self) -> u64 {
        self.span_us.div_ceil(self.length_us)
    }

    /// The time `offset_us` after the start of the range.
    fn at(&self, offset_us: u64) -> i64 {
        self.range.start.micros().wrapping_add_unsigned(offset_us)
    }

    fn end_offset_us(&self, index: u64) -> u64 {
        (index * self.length_us).saturating_add(self.length_us).min(self.span_us)
    }

    pub(super) fn middle(&self, index: u64) -> Timestamp {
        let (start_us, end_us) = (index * self.length_us, self.end_offset_us(index));
        Timestamp::from_micros(self.at(start_us + (end_us - start_us) / 2))
    }

    /// Splits ascending times into runs of one interval each. All times must be in the range.
    pub(super) fn cut(&self, times: &[i64], runs: &mut Vec<Run>) {
        runs.clear();
        let (mut begin, mut length) = (0, 1);
        while let Some(ts) = times.get(begin) {
            let offset_us = ts.abs_diff(self.range.start.micros());
            assert!(offset_us < self.span_us, "BUG: a row outside of the range that was asked for");
            let index = offset_us / self.length_us;
            let end = self.at(self.end_offset_us(index));
            length = length_below(&times[begin..], end, length);
            runs.push((index, begin..begin + length));
            begin += length;
        }
    }
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
    use super::*;

    #[test]
    fn ranges_longer_than_times_can_be_counted_have_their_intervals() {
        let year_us = 365 * 86_400_000_000;
        let intervals =
            Intervals::new(TimeRange::new(Timestamp::MIN, Timestamp::from_micros(year_us)), year_us);
        assert_eq!(intervals.count(), (1 << 63) / year_us as u64 + 2);
        let times = [i64::MIN, i64::MIN + 1, -1, 0, year_us - 1];
        let mut runs = Vec::new();
        intervals.cut(&times, &mut runs);
        let whole = (1 << 63) / year_us as u64;
        assert_eq!(runs, [(0, 0..2), (whole, 2..4), (whole + 1, 4..5)]);
        let middles: Vec<i64> = runs.iter().map(|(index, _)| intervals.middle(*index).micros()).collect();
        assert!(middles.is_sorted() && middles[0] == i64::MIN + year_us / 2, "{middles:?}");
        let ends = TimeRange::new(Timestamp::MIN, Timestamp::MAX);
        assert_eq!(Intervals::new(ends, i64::MAX).count(), 3);
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
