//! The buckets of `GROUP BY time(...)`.

use super::reduce::{TIME_MAX, TIME_MIN};
use super::time::offset_at;

/// Buckets of equal length. Nothing is grouped by time if `every` is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Buckets {
    /// The length in nanoseconds.
    pub every: i64,
    /// Where the buckets begin, in nanoseconds after the epoch.
    pub offset: i64,
    /// The zone whose midnight buckets begin at.
    pub zone: Option<chrono_tz::Tz>,
}

impl Buckets {
    pub(super) fn is_none(&self) -> bool {
        self.every == 0
    }

    /// The bucket of a time: its first time and the first time after it. `start..=end` is the range of the query, which is the
    /// bucket when nothing is grouped by time.
    pub(super) fn around(&self, time: i64, start: i64, end: i64) -> (i64, i64) {
        if self.is_none() {
            return (start, end.saturating_add(1));
        }
        let time = time.saturating_sub(self.offset);
        let zone = self.zone.map_or(0, |zone| offset_at(zone, time));
        let since = time.saturating_add(zone).rem_euclid(self.every);
        let mut first = match TIME_MIN.saturating_add(since) >= time {
            true => TIME_MIN,
            false => time - since,
        };
        if let Some(own) = self.zone {
            let shift = zone - offset_at(own, first);
            if shift != 0 && shift.abs() < self.every {
                first += shift;
            }
        }
        first = first.saturating_add(self.offset);
        let until = self.every - since;
        let mut after = match TIME_MAX - until <= time {
            true => TIME_MAX,
            false => time + until,
        };
        if let Some(own) = self.zone {
            let shift = zone - offset_at(own, after);
            if shift != 0 && shift.abs() < self.every && (shift > 0 || after.saturating_add(shift) > time) {
                after += shift;
            }
        }
        (first, after.saturating_add(self.offset))
    }

    /// The first time of the bucket of a time.
    pub(super) fn start(&self, time: i64, start: i64, end: i64) -> i64 {
        self.around(time, start, end).0
    }
}
