//! Finds and makes the series of a request.

use std::sync::{Arc, OnceLock};

use model::{SeriesId, SeriesKey, TableName};
use store::{Blame, Store, StoreError};

use super::refusal::PointRefusal;
use super::series_cache::KnownSeries;
use crate::databases::OpenDatabase;
use crate::live::Live;
use crate::registry::{AUDIT_TABLE, DEAD_LETTER_TABLE};

/// The series of a database, by the bytes that name them in requests.
pub(crate) struct SeriesFinder {
    pub(super) database: OpenDatabase,
    pub(super) store: Arc<dyn Store>,
    pub(super) live: Arc<Live>,
    pub(super) known: Arc<KnownSeries>,
    /// The first series that the store did not make, although nothing is wrong with it, and why.
    pub(super) unmade: OnceLock<(SeriesKey, StoreError)>,
}

impl SeriesFinder {
    /// The series that `bytes` names in the request. `key` decodes the table and the tags; it is called only if the series is not
    /// known yet.
    pub(super) fn find<'a>(
        &self,
        bytes: &[u8],
        key: impl FnOnce() -> (&'a str, Vec<(&'a str, &'a str)>),
    ) -> Result<SeriesId, PointRefusal> {
        let name = self.known.name(bytes);
        if let Some(series) = self.known.get(name) {
            return Ok(series);
        }
        if self.unmade.get().is_some() {
            return Err(PointRefusal::NoSeriesNow);
        }
        let (table, tags) = key();
        let series = self.resolve(table, &tags)?;
        self.known.put(name, series);
        Ok(series)
    }

    fn resolve(&self, table: &str, tags: &[(&str, &str)]) -> Result<SeriesId, PointRefusal> {
        if self.database.is_own() && [AUDIT_TABLE, DEAD_LETTER_TABLE].contains(&table) {
            return Err(PointRefusal::OwnTable { table: table.to_owned() });
        }
        let key = SeriesKey::new(&TableName::new(self.database.namespace(), table)?, tags)?;
        if let Some(series) = self.store.find_series(&key) {
            return Ok(series);
        }
        match self.store.series(&key) {
            Ok(series) => {
                self.live.series_created();
                Ok(series)
            }
            Err(error) if error.blame() == Blame::Caller => Err(PointRefusal::Store(error)),
            Err(error) => {
                // Only the first one counts.
                let _ = self.unmade.set((key, error));
                Err(PointRefusal::NoSeriesNow)
            }
        }
    }
}
