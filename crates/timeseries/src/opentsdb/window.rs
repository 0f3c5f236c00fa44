//! The times that a query reads: more than it was asked for.
//!
//! OpenTSDB stores rows of an hour and reads whole rows. So rates and interpolated values at the borders of a query see the
//! points of the rest of the hour.

use model::{TimeRange, Timestamp};

const ROW: i64 = 3600;

/// The times of a query, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// The first time of the answer.
    pub(super) start: i64,
    /// The last time of the answer.
    pub(super) end: i64,
    /// The first time to read.
    pub(super) read_start: i64,
    /// The first time after the read.
    pub(super) read_end: i64,
}

impl Window {
    /// The window of a query from `start` to `end` whose intervals have a length of `interval` milliseconds, 0 if there are none.
    pub(super) fn new(start: i64, end: i64, interval: i64) -> Self {
        let first = start.div_euclid(1000);
        let last = end.div_euclid(1000).saturating_add(1);
        let (mut read_start, mut read_end) = (first, last);
        if interval > 0 {
            read_start -= first.saturating_mul(1000).rem_euclid(interval) / 1000;
            let into = last.saturating_mul(1000).rem_euclid(interval);
            read_end = read_end.saturating_add((interval - into) / 1000);
            if read_end.rem_euclid(ROW) != 0 {
                read_end = next_row(read_end);
            }
        } else {
            read_end = next_row(read_end);
        }
        read_start -= read_start.rem_euclid(ROW);
        Self {
            start,
            end,
            read_start: read_start.max(0) * 1000,
            read_end: read_end.min(i64::MAX / 1_000_000) * 1000,
        }
    }

    /// The times to read.
    pub(super) fn range(&self) -> TimeRange {
        let at = |millis: i64| Timestamp::from_millis(millis).unwrap_or(Timestamp::MAX);
        TimeRange::new(at(self.read_start), at(self.read_end))
    }
}

fn next_row(seconds: i64) -> i64 {
    seconds.saturating_add(ROW - seconds.rem_euclid(ROW))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_reads_whole_hours_and_whole_intervals() {
        let read = |start: i64, end: i64, interval: i64| {
            let window = Window::new(start * 1000, end * 1000, interval * 1000);
            (window.read_start / 1000, window.read_end / 1000)
        };
        assert_eq!(read(7200, 7300, 0), (7200, 10800));
        assert_eq!(read(7199, 10799, 0), (3600, 14400));
        assert_eq!(read(90_000, 90_001, 86_400), (86_400, 172_800));
    }
}
