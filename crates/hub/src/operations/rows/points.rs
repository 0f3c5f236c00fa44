//! Begins the collection of the rows of a request, appends them, and waits until they are durable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Batch, SeriesKey};
use store::{Durability, StoreError, Ticket};

use crate::audit::AUDIT_TAG;
use crate::caller::{Action, Caller, Forbidden};
use crate::databases::OpenDatabase;
use crate::hub::Hub;
use crate::metrics::Door;
use crate::new_columns::reason;
use crate::points::{AcceptError, Accepted, Points, RefusedItem, Rows, without};
use crate::registry::{DEAD_LETTER_TABLE, own_table};

/// The durability that the answer to a request promises.
const DURABILITY: Durability = Durability::Fsync;

impl Hub {
    /// Begins to collect rows for a database.
    ///
    /// # Errors
    /// The caller may not write, or sees only what is assigned to a customer.
    pub fn points(&self, caller: &Caller, database: &OpenDatabase, door: Door) -> Result<Points, Forbidden> {
        caller.check_on(Action::Write, caller.tenant(), None)?;
        let series = (Arc::clone(&self.store), Arc::clone(&self.live));
        let known = self.series_cache.of(database.namespace());
        Ok(Points::new(caller.clone(), database.clone(), door, series, known, &self.limits))
    }

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
        if let Some((key, _)) = points.unmade() {
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
        if !points.dead_letters.is_empty() {
            let dead_letters = self.dead_letter_rows(&points, topic)?;
            tickets
                .push(self.append_when_free(busy_timeout, || self.ingest(&dead_letters, DURABILITY)).await?);
        }
        for ticket in tickets {
            self.wait_until_durable(ticket, DURABILITY).await?;
        }
        Ok(accepted)
    }

    /// The dead letters as rows of their table, in the series of the sender's login.
    fn dead_letter_rows(&self, points: &Points, topic: &str) -> Result<Batch, StoreError> {
        let caller = &points.caller;
        let table = own_table(&self.registry.namespace(caller.tenant()), DEAD_LETTER_TABLE);
        let series = self.store.series(&SeriesKey::new(&table, &[(AUDIT_TAG, caller.login())])?)?;
        let mut batch = Batch::new();
        points
            .dead_letters
            .each(topic, |dead_letter| self.add_dead_letter_row(series, dead_letter, &mut batch));
        Ok(batch)
    }

    fn if_gone(&self, points: &Points, error: StoreError) -> AcceptError {
        if error.is_unknown_series() {
            self.series_cache.forget(points.database().namespace());
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

struct Appended {
    ticket: Option<Ticket>,
    rows: usize,
    refused: Vec<RefusedItem>,
}
