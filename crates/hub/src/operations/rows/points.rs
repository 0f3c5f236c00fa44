//! Begins the collection of the rows of a request, appends them, and waits until they are durable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Batch, SeriesKey};
use store::{Blame, Durability, StoreError, Ticket};

use crate::audit::AUDIT_TAG;
use crate::caller::{Action, Caller, Forbidden};
use crate::databases::OpenDatabase;
use crate::hub::Hub;
use crate::metrics::Door;
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
            let letters = self.refused_items(&points, topic)?;
            tickets.push(self.append_when_free(busy_timeout, || self.ingest(&letters, DURABILITY)).await?);
        }
        for ticket in tickets {
            self.wait_until_durable(ticket, DURABILITY).await?;
        }
        Ok(accepted)
    }

    /// The letters as rows of the table of dead letters, in the series of the sender's login.
    fn refused_items(&self, points: &Points, topic: &str) -> Result<Batch, StoreError> {
        let caller = &points.caller;
        let table = own_table(&self.registry.namespace(caller.tenant()), DEAD_LETTER_TABLE);
        let series = self.store.series(&SeriesKey::new(&table, &[(AUDIT_TAG, caller.login())])?)?;
        let mut batch = Batch::new();
        points.letters.each(topic, |letter| self.add_letter(series, letter, &mut batch));
        Ok(batch)
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
