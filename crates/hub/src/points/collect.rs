//! Collects the rows of one request.

use std::sync::{Arc, OnceLock};

use model::limits::{BATCH_TEXT_BYTES_MAX, IngestLimits};
use model::{Batch, SeriesKey, TimeRange, Timestamp, ValueRef};
use store::{Store, StoreError};

use super::dead_letters::DeadLetters;
use super::refusal::PointRefusal;
use super::series_cache::KnownSeries;
use super::series_finder::SeriesFinder;
use crate::caller::Caller;
use crate::clock::system_now;
use crate::databases::OpenDatabase;
use crate::live::Live;
use crate::metrics::Door;

/// The rows of one request, and what was refused of it. Needs no lock while it grows, and can be filled on any thread.
pub struct Points {
    pub(crate) caller: Caller,
    pub(crate) filled: Vec<Rows>,
    pub(crate) rows: Rows,
    pub(crate) dead_letters: DeadLetters,
    finder: SeriesFinder,
    plausible: TimeRange,
    future_max_s: i64,
    text_value_bytes_max: usize,
}

/// Rows of one batch, with the number of the item from which each row comes.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) batch: Batch,
    pub(crate) items: Vec<u32>,
}

impl std::fmt::Debug for Points {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Points").field("database", &self.finder.database).finish_non_exhaustive()
    }
}

impl Points {
    /// Begins to collect rows.
    pub(crate) fn new(
        caller: Caller,
        database: OpenDatabase,
        door: Door,
        (store, live): (Arc<dyn Store>, Arc<Live>),
        known: Arc<KnownSeries>,
        limits: &IngestLimits,
    ) -> Self {
        let IngestLimits { future_max_s, text_value_bytes_max, .. } = *limits;
        Self {
            caller,
            filled: Vec::new(),
            rows: Rows::default(),
            dead_letters: DeadLetters::new(door),
            finder: SeriesFinder { database, store, live, known, unmade: OnceLock::new() },
            plausible: limits.plausible(system_now()),
            future_max_s,
            text_value_bytes_max,
        }
    }

    /// Adds the row of an item to the series that `name` names in the request. `key` decodes the table and the tags; it is called only
    /// if the series is not known yet. The values of a row that exists already are replaced key by key.
    ///
    /// # Errors
    /// The time is not plausible, a text is too long, the key breaks the rules for names, the server itself writes the table, or the
    /// store cannot make the series. Then the row is not added and no series is made. After [`PointRefusal::NoSeriesNow`] the rest
    /// of the request need not be read.
    pub fn add<'a, 'k>(
        &mut self,
        item: u32,
        ts: Timestamp,
        name: &[u8],
        key: impl FnOnce() -> (&'k str, Vec<(&'k str, &'k str)>),
        fields: impl IntoIterator<Item = (&'a str, ValueRef<'a>)>,
    ) -> Result<(), PointRefusal> {
        self.check_time(ts)?;
        if self.rows.batch.is_full() {
            self.filled.push(std::mem::take(&mut self.rows));
        }
        let mut row = self.rows.batch.builder();
        for (key, value) in fields {
            if let ValueRef::String(text) | ValueRef::Json(text) = value {
                let limit = self.text_value_bytes_max.min(BATCH_TEXT_BYTES_MAX / 4);
                if text.len() > limit {
                    return Err(PointRefusal::TextTooLong { key: key.to_owned(), bytes: text.len(), limit });
                }
            }
            row.field(key, value);
        }
        row.row(self.finder.find(name, key)?, ts);
        row.finish();
        self.rows.items.push(item);
        Ok(())
    }

    /// Keeps what was refused of the request as a dead letter. `payload` is the item as it was sent.
    pub fn refuse(&mut self, reason: &str, payload: &[u8]) {
        // A request that fails as a whole leaves nothing.
        if self.unmade().is_none() {
            self.dead_letters.add(reason, payload);
        }
    }

    /// Whether the rows fill a batch. They should be accepted before more are added: the rows of a long request take several times its
    /// bytes.
    pub fn is_full(&self) -> bool {
        !self.filled.is_empty() || self.rows.batch.is_full()
    }

    /// Whether the request gave no row and no refusal.
    pub fn is_empty(&self) -> bool {
        self.filled.is_empty() && self.rows.batch.is_empty() && self.dead_letters.is_empty()
    }

    /// The database of the rows.
    pub(crate) fn database(&self) -> &OpenDatabase {
        &self.finder.database
    }

    /// The first series that the store did not make, although nothing is wrong with it, and why.
    pub(crate) fn unmade(&self) -> Option<&(SeriesKey, StoreError)> {
        self.finder.unmade.get()
    }

    #[inline]
    fn check_time(&self, ts: Timestamp) -> Result<(), PointRefusal> {
        if ts < self.plausible.start {
            return Err(PointRefusal::TooOld { oldest: self.plausible.start });
        }
        if ts >= self.plausible.end {
            return Err(PointRefusal::TooNew { future_max_s: self.future_max_s });
        }
        Ok(())
    }
}
