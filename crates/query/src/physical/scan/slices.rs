//! The slices of time in which a scan reads, each larger than the one before.

use model::{TimeRange, Timestamp};
use store::{Order, TableSnapshot};

use super::top_k_filter::TopKFilter;

/// Estimated rows of the first slice. Most queries for a few rows need fewer, and they are read in about a millisecond.
pub(crate) const FIRST_SLICE_ROWS: u64 = 64 * 1024;
/// The next slice has this many times the rows. A file may hold the rows of a day, and each slice of the day decodes it again.
const GROWTH: u64 = 8;

/// How a scan reads in slices of time.
#[derive(Debug, Clone)]
pub(crate) struct Slicing {
    /// Tells which times a row may still have.
    pub(crate) filter: TopKFilter,
    /// Ascending: the scan begins with the oldest rows.
    pub(crate) order: Order,
    /// A range that holds the times of all rows.
    pub(crate) range: TimeRange,
    /// The share of the table's rows that belongs to the series that are read.
    pub(crate) share: f64,
}

/// The slices that have not been read yet.
#[derive(Debug)]
pub(crate) struct Slices {
    slicing: Slicing,
    unread: TimeRange,
    /// The estimated number of rows of the next slice.
    rows: f64,
}

impl Slices {
    /// All slices of a scan.
    pub(crate) fn new(slicing: Slicing) -> Self {
        let rows = FIRST_SLICE_ROWS as f64 / slicing.share.clamp(f64::MIN_POSITIVE, 1.0);
        Self { unread: slicing.range, slicing, rows }
    }

    /// Returns the next slice; `None` when the sort needs none of the unread rows.
    pub(crate) fn next(&mut self, snapshot: &dyn TableSnapshot) -> Option<TimeRange> {
        if self.unread.is_empty() || !self.slicing.filter.may_pass(self.unread) {
            return None;
        }
        let order = self.slicing.order;
        let (slice, rest) = cut(self.unread, order, |range| snapshot.rows_within(range) as f64 >= self.rows);
        self.unread = rest;
        self.rows *= GROWTH as f64;
        Some(slice)
    }
}

/// Splits a range into the shortest piece at one end that is enough, and the rest. If no piece is enough, the first is the whole range.
fn cut(range: TimeRange, order: Order, is_enough: impl Fn(TimeRange) -> bool) -> (TimeRange, TimeRange) {
    let length = range.end.micros().abs_diff(range.start.micros());
    let split = |length: u64| match order {
        Order::Ascending => {
            let at = Timestamp::from_micros(range.start.micros().saturating_add_unsigned(length));
            (TimeRange::new(range.start, at), TimeRange::new(at, range.end))
        }
        Order::Descending => {
            let at = Timestamp::from_micros(range.end.micros().saturating_sub_unsigned(length));
            (TimeRange::new(at, range.end), TimeRange::new(range.start, at))
        }
    };
    let (mut low, mut high) = (1, length.max(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if is_enough(split(middle).0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    split(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange::new(Timestamp::from_micros(start), Timestamp::from_micros(end))
    }

    #[test]
    fn a_cut_is_as_short_as_it_may_be() {
        let holds = |instant: i64| move |piece: TimeRange| piece.contains(Timestamp::from_micros(instant));
        let whole = range(-10, 100);
        assert_eq!(cut(whole, Order::Descending, holds(70)), (range(70, 100), range(-10, 70)));
        assert_eq!(cut(whole, Order::Ascending, holds(70)), (range(-10, 71), range(71, 100)));
        assert_eq!(cut(whole, Order::Descending, holds(99)), (range(99, 100), range(-10, 99)));
        assert_eq!(cut(whole, Order::Descending, |_| false), (whole, range(-10, -10)));
        let (all, none) = cut(TimeRange::ALL, Order::Ascending, |_| false);
        assert!(all == TimeRange::ALL && none.is_empty());
    }
}
