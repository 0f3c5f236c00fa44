//! Decides whether operators that were chosen for one scan suit another scan of the same table.

use std::sync::Arc;

use model::limits;
use store::ReadOrder;

use super::spec::ScanSpec;

/// The properties of a scan for which operators were chosen. It holds no snapshot.
#[derive(Debug)]
pub(crate) struct ScanFingerprint {
    pub(super) spec: Arc<ScanSpec>,
    pub(super) order: ReadOrder,
    pub(super) limit: Option<usize>,
    pub(super) constants: Vec<usize>,
    pub(super) partitions: usize,
    pub(super) rows: u64,
    /// The number of series, if a rule may have asked for it.
    pub(super) series: Option<u64>,
}

impl ScanFingerprint {
    /// Whether operators that were chosen for this scan suit another one.
    pub(super) fn suits(&self, now: &Self) -> bool {
        let is_like = |before: u64, now: u64| {
            before.max(now) <= before.min(now).saturating_mul(limits::SQL_OPERATORS_KEPT_GROWTH_MAX)
        };
        let series_are_like = match (self.series, now.series) {
            (Some(before), Some(now)) => is_like(before, now) && (before == 1) == (now == 1),
            (before, now) => before == now,
        };
        let can_be_ordered = matches!(self.order, ReadOrder::Any | ReadOrder::LastRow(_))
            || now.series.is_some_and(|series| series <= limits::QUERY_TIME_ORDER_SERIES_MAX);
        self.constants == now.constants
            && self.partitions == now.partitions
            && is_like(self.rows, now.rows)
            && series_are_like
            && can_be_ordered
    }
}

#[cfg(test)]
mod tests {
    use model::TimeRange;
    use store::Order;

    use super::*;

    fn fingerprint(order: ReadOrder, rows: u64, series: Option<u64>) -> ScanFingerprint {
        let spec = ScanSpec {
            table: "t".into(),
            schema: Arc::new(arrow_schema::Schema::empty()),
            columns: Vec::new(),
            matchers: Vec::new(),
            range: TimeRange::ALL,
            limit: None,
            batch_rows: 1,
            readers_max: 1,
        };
        let spec = Arc::new(spec);
        ScanFingerprint { spec, order, limit: None, constants: vec![0], partitions: 2, rows, series }
    }

    #[test]
    fn operators_suit_scans_like_their_own_only() {
        let any = |rows, series| fingerprint(ReadOrder::Any, rows, series);
        let by_time = |series| fingerprint(ReadOrder::Time(Order::Ascending), 100, Some(series));
        let before = any(100, Some(10));
        assert!(before.suits(&any(200, Some(20))) && before.suits(&any(50, Some(5))));
        assert!(!before.suits(&any(201, Some(10))) && !before.suits(&any(49, Some(10))));
        assert!(!before.suits(&any(100, Some(21))) && !before.suits(&any(100, Some(4))));
        assert!(!before.suits(&any(100, None)) && !any(100, None).suits(&before));
        assert!(any(100, None).suits(&any(100, None)));
        // One series has an order that two do not have.
        assert!(!any(100, Some(1)).suits(&any(100, Some(2))));
        assert!(!any(100, Some(2)).suits(&any(100, Some(1))));
        let most = limits::QUERY_TIME_ORDER_SERIES_MAX;
        assert!(by_time(most).suits(&by_time(most)) && !by_time(most).suits(&by_time(most + 1)));
        assert!(!before.suits(&ScanFingerprint { partitions: 1, ..any(100, Some(10)) }));
        assert!(!before.suits(&ScanFingerprint { constants: Vec::new(), ..any(100, Some(10)) }));
    }
}
