//! Tombstones: deletions of rows that sources still have.
//!
//! A tombstone has a sequence, like a row, and hides only rows with smaller ones. Rows in memory and in parts have no
//! sequences of their own, so sources as a whole are older or newer than a tombstone:
//! 1. A deletion freezes the open chunk if that may have rows that it hides. So a chunk has such rows only if its last
//!    sequence is smaller than that of the tombstone.
//! 2. A flush and a merge leave out what tombstones hide. The part notes the sequence up to which they did
//!    ([`PartInfo::applied`](crate::part::PartInfo::applied)); later tombstones hide rows of the whole part.
//! 3. A tombstone enters the manifest with the flush after it, and only then merges leave out rows for it. So no sequence
//!    in the manifest is beyond those that its parts cover, and a power cut cannot take a tombstone and keep its effect on
//!    some rows, or give its sequence to a row.

mod encoding;
mod list;
mod rows;

use std::sync::Arc;

use store::SeriesSet;

use crate::catalog::Catalog;
use crate::chunk::Extent;
use crate::row::KeyId;
pub(crate) use encoding::{put_tombstone, read_tombstone};
pub(crate) use list::Tombstones;
pub(crate) use rows::{Mask, hide_rows, masked};

/// A deletion of rows or of values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tombstone {
    pub(crate) sequence: u64,
    pub(crate) table: u32,
    pub(crate) series: SeriesSet,
    /// The times in microseconds, half-open.
    pub(crate) ts: (i64, i64),
    /// The keys whose values it hides, ascending; whole rows when `None`.
    pub(crate) keys: Option<Vec<KeyId>>,
    /// Whether the series end with it.
    pub(crate) ends_series: bool,
}

/// The tombstones of a table that hide rows of one source; `None` when there are none, which is nearly always so.
pub(crate) type Hidden = Option<Arc<[Arc<Tombstone>]>>;

impl Tombstone {
    /// The tombstone of series that end.
    pub(crate) fn of_series(sequence: u64, table: u32, series: SeriesSet) -> Self {
        Self { sequence, table, series, ts: (i64::MIN, i64::MAX), keys: None, ends_series: true }
    }

    /// Whether the table and the keys are defined. The series may be newer than the definitions.
    pub(crate) fn is_defined(&self, catalog: &Catalog) -> bool {
        let table = catalog.tables.get(self.table as usize);
        let newest = self.keys.as_ref().and_then(|keys| keys.last());
        table.is_some_and(|table| newest.is_none_or(|key| (*key as usize) < table.keys.len()))
    }

    /// Whether a row is in the series and the times.
    #[inline]
    pub(crate) fn covers(&self, series: u32, ts: i64) -> bool {
        self.ts.0 <= ts && ts < self.ts.1 && self.series.contains(series)
    }

    /// Whether it hides a row as a whole.
    #[inline]
    fn hides_row(&self, series: u32, ts: i64) -> bool {
        self.keys.is_none() && self.covers(series, ts)
    }

    /// Whether it hides the values of a key, and not the row.
    #[inline]
    fn has_key(&self, key: KeyId) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.binary_search(&key).is_ok())
    }

    /// Whether it may hide something in an extent.
    pub(crate) fn touches(&self, extent: &Extent) -> bool {
        let (first, last) = extent.series;
        self.ts.0 <= extent.ts.1
            && extent.ts.0 < self.ts.1
            && first <= last
            && self.series.range(first..=last).next().is_some()
    }
}

/// The tombstones that hide rows of a source, which has this extent and is newer than the tombstones up to `applied`.
pub(crate) fn hidden_in(tombstones: &[Arc<Tombstone>], applied: u64, extent: &Extent) -> Hidden {
    let hides = |tombstone: &&Arc<Tombstone>| tombstone.sequence > applied && tombstone.touches(extent);
    let found: Vec<Arc<Tombstone>> = tombstones.iter().filter(hides).cloned().collect();
    (!found.is_empty()).then(|| found.into())
}

/// Whether a row is hidden as a whole.
#[inline]
pub(crate) fn is_hidden(hidden: &Hidden, series: u32, ts: i64) -> bool {
    hidden.as_ref().is_some_and(|all| all.iter().any(|tombstone| tombstone.hides_row(series, ts)))
}

/// Whether the value of a key of a row is hidden, alone or with the row.
#[inline]
pub(crate) fn is_value_hidden(hidden: &Hidden, series: u32, ts: i64, key: KeyId) -> bool {
    let hides = |tombstone: &Arc<Tombstone>| {
        (tombstone.keys.is_none() || tombstone.has_key(key)) && tombstone.covers(series, ts)
    };
    hidden.as_ref().is_some_and(|all| all.iter().any(hides))
}

/// Whether there are tombstones that hide values and not rows.
pub(crate) fn hides_values(hidden: &Hidden) -> bool {
    hidden.as_ref().is_some_and(|all| all.iter().any(|tombstone| tombstone.keys.is_some()))
}

#[cfg(test)]
pub(crate) fn tombstone(sequence: u64, series: &[u32], ts: (i64, i64), keys: Option<&[KeyId]>) -> Tombstone {
    let keys = keys.map(<[KeyId]>::to_vec);
    let series = series.iter().copied().collect();
    Tombstone { sequence, table: 0, series, ts, keys, ends_series: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tombstone_covers_its_series_and_its_times() {
        let rows = tombstone(5, &[2, 4], (10, 20), None);
        let found: Vec<bool> = [(2, 9), (2, 10), (4, 19), (4, 20), (3, 15)]
            .map(|(series, ts)| rows.hides_row(series, ts))
            .into();
        assert_eq!(found, [false, true, true, false, false]);
        let values = Some(vec![Arc::new(tombstone(5, &[2], (10, 20), Some(&[1, 7])))].into());
        assert!(!is_hidden(&values, 2, 15) && hides_values(&values));
        assert!(is_value_hidden(&values, 2, 15, 7) && !is_value_hidden(&values, 2, 15, 6));
    }

    #[test]
    fn only_sources_that_are_older_and_may_have_rows_are_concerned() {
        let all = [Arc::new(tombstone(5, &[2, 9], (10, 20), None))];
        let is_concerned = |applied, series, ts| hidden_in(&all, applied, &Extent { series, ts }).is_some();
        assert!(is_concerned(4, (0, 2), (0, 10)) && is_concerned(0, (9, 9), (19, 50)));
        assert!(!is_concerned(5, (0, 2), (0, 10)), "it is newer");
        assert!(!is_concerned(4, (3, 8), (0, 99)), "other series");
        assert!(!is_concerned(4, (0, 9), (0, 9)) && !is_concerned(4, (0, 9), (20, 30)), "other times");
    }
}
