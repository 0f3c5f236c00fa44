//! The order in which a merge gives rows.

use store::Order;

/// The order of the rows that a merge gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOrder {
    /// Series, then time.
    Series,
    /// Time, then series.
    Time(Order),
}

/// The sort key of a row. It ascends in every order.
pub(super) type OrderKey = (i64, i64);

impl RowOrder {
    pub(super) fn key(self, series: u32, ts: i64) -> OrderKey {
        match self {
            Self::Series => (series.into(), ts),
            Self::Time(Order::Ascending) => (ts, series.into()),
            // Turns the order around without an overflow.
            Self::Time(Order::Descending) => (!ts, series.into()),
        }
    }

    pub(super) fn is_backward(self) -> bool {
        self == Self::Time(Order::Descending)
    }
}
