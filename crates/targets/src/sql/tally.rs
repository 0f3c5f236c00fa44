//! Statements counted as sysbench counts them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use clients::sql::{Effect, SqlError};

use super::statement::Sql;

/// Statements of all connections, counted as sysbench counts them.
#[derive(Debug, Default)]
pub struct Statements {
    read: AtomicU64,
    write: AtomicU64,
    other: AtomicU64,
    unchanged: AtomicU64,
    refused: AtomicU64,
    retried: AtomicU64,
    reconnected: AtomicU64,
    rows: AtomicU64,
}

/// A copy of the counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct StatementCounts {
    /// SELECTs.
    pub read: u64,
    /// INSERT, UPDATE and DELETE that changed at least one row.
    pub write: u64,
    /// BEGIN, COMMIT, ROLLBACK, and writes that changed nothing.
    pub other: u64,
    /// Writes that changed nothing; `other` includes them.
    pub unchanged: u64,
    /// Statements other than SELECT that the server refused. The server counts them, sysbench does not.
    pub refused: u64,
    /// Transactions that were repeated because the server asked for it.
    pub retried: u64,
    /// Connections that were opened again.
    pub reconnected: u64,
    /// Rows that were returned, or written by `bulk_insert`.
    pub rows: u64,
}

impl StatementCounts {
    /// The counts by name, for the exchange between processes.
    pub fn by_name(self) -> BTreeMap<String, u64> {
        let named = self.named().into_iter();
        named.map(|(name, count)| (name.to_owned(), count)).collect()
    }

    /// Reads the counts of [`Self::by_name`]; missing ones are 0.
    pub fn from_names(counts: &BTreeMap<String, u64>) -> Self {
        let count = |name: &str| counts.get(name).copied().unwrap_or(0);
        Self {
            read: count("read"),
            write: count("write"),
            other: count("other"),
            unchanged: count("unchanged"),
            refused: count("refused"),
            retried: count("retried"),
            reconnected: count("reconnected"),
            rows: count("rows"),
        }
    }

    fn named(self) -> [(&'static str, u64); 8] {
        [
            ("read", self.read),
            ("write", self.write),
            ("other", self.other),
            ("unchanged", self.unchanged),
            ("refused", self.refused),
            ("retried", self.retried),
            ("reconnected", self.reconnected),
            ("rows", self.rows),
        ]
    }
}

impl Statements {
    /// The counters now.
    pub fn counts(&self) -> StatementCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StatementCounts {
            read: load(&self.read),
            write: load(&self.write),
            other: load(&self.other),
            unchanged: load(&self.unchanged),
            refused: load(&self.refused),
            retried: load(&self.retried),
            reconnected: load(&self.reconnected),
            rows: load(&self.rows),
        }
    }

    /// Adds the statements of one transaction.
    pub(super) fn add(&self, tally: &Tally) {
        for (counter, count) in [
            (&self.read, tally.read),
            (&self.write, tally.write),
            (&self.other, tally.other),
            (&self.unchanged, tally.unchanged),
            (&self.refused, tally.refused),
            (&self.rows, tally.rows),
        ] {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn add_retried(&self) {
        self.retried.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_reconnected(&self) {
        self.reconnected.fetch_add(1, Ordering::Relaxed);
    }
}

/// Statements of one transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) read: u64,
    pub(super) write: u64,
    pub(super) other: u64,
    pub(super) unchanged: u64,
    pub(super) refused: u64,
    pub(super) rows: u64,
    /// Point selects that found their row, and those that did not.
    pub(super) hits: u32,
    pub(super) misses: u32,
}

impl Tally {
    /// Counts a statement that the server refused.
    pub(super) fn add_refused(&mut self, sql: Sql, error: &SqlError) {
        if error.code().is_none() {
            return;
        }
        if sql.is_read() {
            self.read += 1;
        } else {
            self.refused += 1;
        }
    }

    /// Counts a statement that the server carried out.
    pub(super) fn add_done(&mut self, sql: Sql, effect: Effect) {
        if sql.is_read() {
            self.read += 1;
            self.rows += effect.rows;
        } else if effect.affected > 0 {
            self.write += 1;
        } else {
            self.other += 1;
            self.unchanged += 1;
        }
        if sql == Sql::Point {
            let hit = effect.rows > 0;
            self.hits += u32::from(hit);
            self.misses += u32::from(!hit);
        }
    }
}
