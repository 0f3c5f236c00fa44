//! The reference store with failures on command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use model::{Batch, SeriesId, SeriesKey};
use store::conformance::Wrapper;
use store::{MemoryStore, Reader, RefusedRow, RefusedRows, Store, StoreError, Writer};

/// A key that this store refuses, as if the table had the maximum number of columns.
pub(crate) const ONE_TOO_MANY: &str = "one_too_many";
/// A key whose rows the store does not accept now.
pub(crate) const LATER: &str = "later";

/// The failures that a test can switch on.
#[derive(Debug, Default)]
pub(crate) struct Moods {
    /// The store has no room for new series.
    pub(crate) no_new_series: AtomicBool,
    /// The store has no room for rows with the key [`LATER`].
    pub(crate) no_later: AtomicBool,
    /// The largest batch that the store accepts, in rows; 0 for any.
    pub(crate) rows_max: AtomicUsize,
    /// The store accepts nothing, as after a failed write.
    pub(crate) takes_nothing: AtomicBool,
    /// `append` panics.
    pub(crate) panics: AtomicBool,
    /// The creation of series panics.
    pub(crate) panics_at_series: AtomicBool,
}

pub(crate) struct MoodyStore {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) moods: Arc<Moods>,
}

impl Wrapper for MoodyStore {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    fn make_series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError> {
        assert!(!self.moods.panics_at_series.load(Ordering::SeqCst), "a bug on purpose");
        match self.store.find_series(key) {
            Some(series) => Ok(series),
            None if self.moods.no_new_series.load(Ordering::SeqCst) => {
                Err(StoreError::Busy { reason: "no room for a series".into() })
            }
            None => self.store.series(key),
        }
    }

    fn check_batch(&self, batch: &Batch) -> Result<(), StoreError> {
        assert!(!self.moods.panics.load(Ordering::SeqCst), "a bug on purpose");
        if self.moods.takes_nothing.load(Ordering::SeqCst) {
            return Err(StoreError::Sealed { cause: "cannot write".into() });
        }
        let limit = self.moods.rows_max.load(Ordering::SeqCst);
        if limit > 0 && batch.len() > limit {
            let (actual, limit) = (batch.len() as u64, limit as u64);
            return Err(StoreError::OverLimit { what: "rows of a batch", actual, limit });
        }
        let one_too_many =
            || StoreError::OverLimit { what: "columns of a table", actual: 20_001, limit: 20_000 };
        let refused = rows_with(batch, ONE_TOO_MANY).map(|row| RefusedRow::whole(row, one_too_many()));
        RefusedRows::check(refused.collect())?;
        if self.moods.no_later.load(Ordering::SeqCst) && rows_with(batch, LATER).next().is_some() {
            return Err(StoreError::Busy { reason: "no room for these rows".into() });
        }
        Ok(())
    }
}

fn rows_with<'a>(batch: &'a Batch, key: &'a str) -> impl Iterator<Item = usize> + 'a {
    let has_key = move |row: &usize| batch.row(*row).fields().any(|field| field.key == key);
    (0..batch.len()).filter(has_key)
}
