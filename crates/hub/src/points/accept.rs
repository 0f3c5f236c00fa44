//! Appends the rows of a request and waits until they are durable.

use std::time::{Duration, Instant};

use store::{Blame, Durability, StoreError, Ticket};

use super::allowed::without;
use super::collect::{Points, Rows};
use crate::hub::Hub;

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
    /// The store does not accept rows.
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
        if matches!(error, StoreError::UnknownSeries(_)) {
            self.series_cache.forget(points.database.namespace());
            return AcceptError::SeriesGone;
        }
        error.into()
    }

    /// Appends rows; without the values that the bounds on new columns refuse.
    fn append_rows(&self, rows: &Rows) -> Result<Appended, StoreError> {
        match self.ingest(&rows.batch, DURABILITY) {
            Ok(ticket) => Ok(Appended { ticket: Some(ticket), rows: rows.batch.len(), refused: Vec::new() }),
            Err(StoreError::UnknownSeries(series)) => Err(StoreError::UnknownSeries(series)),
            Err(error) if error.blame() != Blame::Caller => Err(error),
            Err(error) => self.append_allowed(rows, error),
        }
    }

    fn append_allowed(&self, rows: &Rows, error: StoreError) -> Result<Appended, StoreError> {
        let mut counts = self.new_columns.lock();
        let now = Instant::now();
        let missing = self.store.missing_columns(&rows.batch)?;
        let plan = self.new_columns.plan(&counts, &missing, now);
        // The columns are not the reason.
        let Some(reason) = plan.reason("a series of the request", &missing) else { return Err(error) };
        let (allowed, losing) = without(rows, &plan.refused(&missing));
        let sequence = match allowed.batch.is_empty() {
            true => None,
            false => Some(self.store.append(&allowed.batch, DURABILITY)?),
        };
        counts.add(&plan, &missing, now);
        drop(counts);
        let ticket = sequence.map(|sequence| {
            self.count_and_queue(&allowed.batch, sequence, DURABILITY);
            Ticket::of_rows(sequence, allowed.batch.len())
        });
        let refused = losing.into_iter().map(|item| RefusedItem { item, reason: reason.clone() }).collect();
        Ok(Appended { ticket, rows: allowed.batch.len(), refused })
    }
}

/// Appended rows.
struct Appended {
    ticket: Option<Ticket>,
    rows: usize,
    refused: Vec<RefusedItem>,
}
