//! Counts of all connections of a phase.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use load::limits::ERROR_TEXTS_MAX;

/// Counts so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    puts: AtomicU64,
    gets: AtomicU64,
    scans: AtomicU64,
    scanned: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
    /// Calls that were repeated, by the reason.
    repeated: Mutex<BTreeMap<String, u64>>,
}

/// A copy of the counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Puts that servers acknowledged.
    pub(super) puts: u64,
    /// Gets that servers answered.
    pub(super) gets: u64,
    /// Scans of one region that servers answered to the end.
    pub(super) scans: u64,
    /// Rows that scans returned.
    pub(super) scanned: u64,
    /// Operations that servers refused for good.
    pub(super) refused: u64,
    /// Calls without an answer, because their connection was lost. Servers may have carried them out.
    pub(super) lost: u64,
    /// Calls that were repeated.
    pub(super) repeated: u64,
}

impl Totals {
    /// The counts by name, for the exchange between processes.
    pub(super) fn by_name(self) -> BTreeMap<String, u64> {
        let named = [
            ("puts", self.puts),
            ("gets", self.gets),
            ("scans", self.scans),
            ("scanned", self.scanned),
            ("refused", self.refused),
            ("lost", self.lost),
            ("repeated", self.repeated),
        ];
        named.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
    }

    /// Reads the counts of [`Self::by_name`]; missing ones are 0.
    pub(super) fn from_names(counts: &BTreeMap<String, u64>) -> Self {
        let count = |name: &str| counts.get(name).copied().unwrap_or(0);
        Self {
            puts: count("puts"),
            gets: count("gets"),
            scans: count("scans"),
            scanned: count("scanned"),
            refused: count("refused"),
            lost: count("lost"),
            repeated: count("repeated"),
        }
    }
}

impl Tally {
    /// The counts now.
    pub(super) fn totals(&self) -> Totals {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            puts: load(&self.puts),
            gets: load(&self.gets),
            scans: load(&self.scans),
            scanned: load(&self.scanned),
            refused: load(&self.refused),
            lost: load(&self.lost),
            repeated: self.repeated.lock().values().sum(),
        }
    }

    /// The reasons for repeated calls, with their counts.
    pub(super) fn reasons(&self) -> BTreeMap<String, u64> {
        self.repeated.lock().clone()
    }

    /// Adds acknowledged puts.
    pub(super) fn add_puts(&self, count: u64) {
        self.puts.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds answered gets.
    pub(super) fn add_gets(&self, count: u64) {
        self.gets.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds a scan of one region.
    pub(super) fn add_scan(&self) {
        self.scans.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds rows that a scan returned.
    pub(super) fn add_scanned(&self, rows: u64) {
        self.scanned.fetch_add(rows, Ordering::Relaxed);
    }

    /// Adds an operation that was refused.
    pub(super) fn add_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a call without an answer.
    pub(super) fn add_lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a call that is repeated.
    pub(super) fn add_repeated(&self, reason: &str) {
        let mut repeated = self.repeated.lock();
        if let Some(count) = repeated.get_mut(reason) {
            *count += 1;
        } else if repeated.len() < ERROR_TEXTS_MAX {
            repeated.insert(reason.to_owned(), 1);
        } else {
            *repeated.entry("others".to_owned()).or_default() += 1;
        }
    }
}

/// The rows of a data set that were written and acknowledged.
#[derive(Debug)]
pub(super) struct WrittenRows(Vec<AtomicU64>);

impl WrittenRows {
    /// None of `rows`.
    pub(super) fn new(rows: u64) -> Self {
        Self((0..rows.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn add(&self, row: u64) {
        if let Some(bits) = self.0.get((row / 64) as usize) {
            bits.fetch_or(1 << (row % 64), Ordering::Relaxed);
        }
    }

    /// Whether a row was written.
    pub(super) fn has(&self, row: u64) -> bool {
        self.0
            .get((row / 64) as usize)
            .is_some_and(|bits| bits.load(Ordering::Relaxed) >> (row % 64) & 1 == 1)
    }

    /// The number of rows.
    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.load(Ordering::Relaxed).count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_the_exchange_between_processes() {
        let tally = Tally::default();
        tally.add_puts(5);
        tally.add_scan();
        tally.add_scanned(100);
        (0..500).for_each(|number| tally.add_repeated(&format!("reason {number}")));
        let totals = tally.totals();
        assert_eq!((totals.puts, totals.scans, totals.scanned, totals.repeated), (5, 1, 100, 500));
        assert_eq!(Totals::from_names(&totals.by_name()), totals);
        assert_eq!(tally.reasons().len(), ERROR_TEXTS_MAX + 1);
    }

    #[test]
    fn each_row_counts_once() {
        let rows = WrittenRows::new(70);
        [0, 69, 69, 1_000].into_iter().for_each(|row| rows.add(row));
        assert_eq!((rows.count(), rows.has(69), rows.has(1), rows.has(1_000)), (2, true, false, false));
    }
}
