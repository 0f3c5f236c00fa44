//! Appends the rows of a request and waits until they are durable.

use std::time::{Duration, Instant};

use store::{Durability, StoreError, Ticket};

use super::allowed::without;
use super::collect::{Points, Rows};
use crate::hub::Hub;
use crate::new_columns::reason;

/// The durability that the answer to a request promises.
const DURABILITY: Durability = Durability::Fsync;

/// A request whose rows are durable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Number of stored rows.
    pub rows: usize,
    /// Items of which the store refused values, in the order of the request. Their other values are stored.
    pub refused: Vec<RefusedItem>,
}

/// An item of which the store refused values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedItem {
    /// The number of the item.
    pub item: u32,
    /// The reason, in words for the sender.
    pub reason: String,
}

/// Why no row, or not every row, of a request is durable. The sender must send it again.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// A series of the request was deleted while the request was read. Collect the rows again: the series is created anew.
    #[error("a series of the request was deleted meanwhile")]
    SeriesGone,
    /// The store was busy when the request needed a new series, and has made it now. Collect the rows again.
    #[error("the store was busy when the request needed a new series")]
    SeriesMade,
    /// The store takes no rows.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Hub {
    /// Appends the rows and dead letters of a request, and waits until they are durable. Waits for a busy store for at most
    /// `busy_timeout`. `topic` names the request in dead letters.
    ///
    /// # Errors
    /// Then rows of the request may be stored. Sending the request again writes the same rows.
    pub async fn accept_points(
        &self,
        points: Points,
        topic: &str,
        busy_timeout: Duration,
    ) -> Result<Accepted, AcceptError> {
        let load = self.tenant_load(points.caller.tenant());
        load.check_points(Instant::now()).map_err(|over| StoreError::Busy { reason: over.to_string() })?;
        if let Some((key, _)) = points.unmade.get() {
            self.append_when_free(busy_timeout, || self.store.series(key)).await?;
            self.live.series_created();
            return Err(AcceptError::SeriesMade);
        }
        let mut accepted = Accepted::default();
        let mut tickets = Vec::new();
        for rows in points.filled.iter().chain([&points.rows]).filter(|rows| !rows.batch.is_empty()) {
            let appended = self.append_when_free(busy_timeout, || self.append_rows(rows)).await;
            let appended = appended.map_err(|error| self.if_gone(&points, error))?;
            load.add_points(rows.batch.points(), Instant::now());
            accepted.rows += appended.rows;
            accepted.refused.extend(appended.refused);
            tickets.extend(appended.ticket);
        }
        if !points.letters.is_empty() {
            let letters = points.letters.batch(self, &points.caller, topic)?;
            tickets.push(self.append_when_free(busy_timeout, || self.ingest(&letters, DURABILITY)).await?);
        }
        for ticket in tickets {
            self.wait_until_durable(ticket, DURABILITY).await?;
        }
        Ok(accepted)
    }

    fn if_gone(&self, points: &Points, error: StoreError) -> AcceptError {
        if error.is_unknown_series() {
            self.series_cache.forget(points.database.namespace());
            return AcceptError::SeriesGone;
        }
        error.into()
    }

    /// Appends rows; without the values that the bounds on new columns refuse.
    fn append_rows(&self, rows: &Rows) -> Result<Appended, StoreError> {
        let mut allowed: Option<Rows> = None;
        let mut refused = Vec::new();
        loop {
            let rows = allowed.as_ref().unwrap_or(rows);
            let appended = match rows.batch.is_empty() {
                true => Ok(None),
                false => self.ingest(&rows.batch, DURABILITY).map(Some),
            };
            let error = match appended {
                Ok(ticket) => return Ok(Appended { ticket, rows: rows.batch.len(), refused }),
                Err(StoreError::Rows(error)) => error,
                Err(error) => return Err(error),
            };
            let Some(reason) = reason("a series of the request", &rows.batch, error.rows()) else {
                // The columns are not the reason.
                return Err(error.into());
            };
            let (fewer, losing) = without(rows, error.rows());
            refused.extend(losing.into_iter().map(|item| RefusedItem { item, reason: reason.clone() }));
            refused.sort_by_key(|refused| refused.item);
            allowed = Some(fewer);
        }
    }
}

/// Appended rows.
struct Appended {
    ticket: Option<Ticket>,
    rows: usize,
    refused: Vec<RefusedItem>,
}
