//! Ingest: resolves series of devices, appends batches and dead letters, and waits for durability.

use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use model::limits::IngestLimits;
use model::{Batch, SeriesId, Timestamp, ValueRef};
use store::{Blame, Durability, Outcome, Progress, ProgressWatcher, Sequence, StoreError, Ticket};

use crate::dead_letter::{DEAD_LETTER_TABLE, DeadLetter};
use crate::hub::Hub;
use crate::registry::own_table;
use crate::series_owner::SeriesOwner;
use crate::taps::{FoundSeries, SeriesObserver, Tap};

impl Hub {
    /// The series that a device or an asset writes to. Creates it with the first rows.
    pub fn series_of<'a>(&self, owner: impl Into<SeriesOwner<'a>>) -> Result<SeriesId, StoreError> {
        let owner = owner.into();
        let key = owner.key_in(&owner.table)?;
        let series = match self.store.find_series(&key) {
            Some(series) => series,
            None => {
                let series = self.store.series(&key)?;
                self.live.series_created();
                series
            }
        };
        if let Some(profile) = owner.device_profile {
            let SeriesOwner { tenant, name, table, .. } = &owner;
            let (tenant, device) = (*tenant, owner.entity.id);
            let found = FoundSeries { series, tenant, device, name, profile, table };
            self.listeners.found_series(&self.registry, &found);
        }
        Ok(series)
    }

    /// Appends a batch. The caller may ack when [`Progress::reached`] of `durability` passes the last sequence of the ticket, and
    /// [`late_failure`](Self::late_failure) has no error of it.
    ///
    /// The hub refuses a batch that needs more columns than its devices may add; [`StoreError::Rows`] names the rows and fields. So
    /// do refusals of the store. [`rows_instead`](Self::rows_instead) makes what is kept of a refused message.
    ///
    /// On [`StoreError::Busy`] nothing is appended: keep the batch, stop reading, and try again at the next progress.
    pub fn ingest(&self, batch: &Batch, durability: Durability) -> Result<Ticket, StoreError> {
        let sequence = match self.store.append_known(batch, durability)? {
            Some(sequence) => sequence,
            None => self.append_with_new_columns(batch, durability)?,
        };
        self.count_and_queue(batch, sequence, durability);
        Ok(Ticket::of_rows(sequence, batch.len()))
    }

    /// Appends a batch that needs new columns: all rows or none.
    fn append_with_new_columns(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError> {
        let mut counts = self.new_columns.lock();
        let now = Instant::now();
        let missing = self.store.missing_columns(batch)?;
        let plan = self.new_columns.plan(&counts, &missing, now);
        plan.check(batch)?;
        let sequence = self.store.append(batch, durability)?;
        counts.add(&plan, now);
        Ok(sequence)
    }

    /// A tap gets rows from now on, after all taps before it. Nothing takes it away again.
    pub fn add_tap(&self, tap: &Arc<Tap>) {
        self.listeners.add_tap(&*self.store, tap);
    }

    /// An observer learns of the series that doors look up from now on. Nothing takes it away again.
    pub fn add_observer(&self, observer: Arc<dyn SeriesObserver>) {
        self.listeners.add_observer(observer);
    }

    /// Counts appended rows and queues them for live subscribers and for the taps.
    pub(crate) fn count_and_queue(&self, batch: &Batch, sequence: Sequence, durability: Durability) {
        self.metrics.appended(durability, batch.len() as u64, batch.points() as u64);
        // Whether the store announced the progress of these rows before they were queued, so that nobody was woken for them.
        let is_announced = || self.store.progress().reached(durability) >= sequence;
        if self.live.queue(batch, sequence, durability) && is_announced() {
            self.fan_out.wake_up();
        }
        for tap in self.listeners.taps() {
            if tap.queue(batch, sequence, durability) && is_announced() {
                tap.wake_up();
            }
        }
    }

    /// Adds a refused payload to `batch` as a row of the dead-letter table. It is stored with the batch.
    ///
    /// Fields: `door`, `topic`, `reason`, and the payload as `payload` if it is text, else as `payload_base64`. Both preserve
    /// every byte.
    pub fn add_dead_letter<'a>(
        &self,
        owner: impl Into<SeriesOwner<'a>>,
        dead_letter: DeadLetter<'_>,
        batch: &mut Batch,
    ) -> Result<(), StoreError> {
        let series = self.dead_letter_series(&owner.into())?;
        self.add_dead_letter_row(series, dead_letter, batch);
        Ok(())
    }

    /// Adds a refused payload to `batch` as a row of a series of the dead-letter table.
    pub(crate) fn add_dead_letter_row(
        &self,
        series: SeriesId,
        dead_letter: DeadLetter<'_>,
        batch: &mut Batch,
    ) {
        let mut row = batch.builder();
        row.field("door", ValueRef::String(dead_letter.door));
        row.field("topic", ValueRef::String(dead_letter.topic));
        row.field("reason", ValueRef::String(dead_letter.reason));
        match std::str::from_utf8(dead_letter.payload) {
            Ok(text) => row.field("payload", ValueRef::String(text)),
            Err(_) => {
                row.field("payload_base64", ValueRef::String(&BASE64_STANDARD.encode(dead_letter.payload)))
            }
        }
        // Receipt times never repeat, so no dead letter overwrites another one.
        row.row(series, self.clock.next());
        row.finish();
    }

    /// The series of the dead letters of a device or an asset.
    pub(crate) fn dead_letter_series(&self, owner: &SeriesOwner<'_>) -> Result<SeriesId, StoreError> {
        self.store.series(&owner.key_in(&own_table(&owner.table.namespace(), DEAD_LETTER_TABLE))?)
    }

    /// The bounds on payloads of a device or an asset: the general bounds and the retention of its table.
    pub fn limits_of<'a>(&self, owner: impl Into<SeriesOwner<'a>>) -> IngestLimits {
        IngestLimits { ttl: self.ttl(&owner.into().table), ..self.limits.clone() }
    }

    /// A receipt time for a row without a time: later than all receipt times before ([`crate::clock::ReceiptClock`]).
    pub fn receipt_time(&self) -> Timestamp {
        self.clock.next()
    }

    /// The progress of the store.
    pub fn progress(&self) -> Progress {
        self.store.progress()
    }

    /// The error of rows that the store took and then lost. The doors ask before they ack.
    pub fn late_failure(&self, ticket: Ticket) -> Option<StoreError> {
        self.store.late_failure(ticket)
    }

    /// Calls `watcher` whenever the store makes progress or a busy store accepts rows again.
    pub fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.store.watch(watcher);
    }

    /// Appends a batch and waits for its durability. Waits for a busy store for at most `busy_timeout`.
    ///
    /// For doors with one request at a time. The MQTT door keeps many batches in flight and watches progress itself.
    pub async fn ingest_and_wait(
        &self,
        batch: &Batch,
        durability: Durability,
        busy_timeout: std::time::Duration,
    ) -> Result<Ticket, StoreError> {
        let take = || self.ingest(batch, durability);
        self.append_and_wait(durability, busy_timeout, take, |ticket| *ticket).await
    }

    /// Calls `append` until the store is not busy, and then waits until the rows of the result's ticket are durable.
    pub(crate) async fn append_and_wait<T>(
        &self,
        durability: Durability,
        busy_timeout: std::time::Duration,
        append: impl Fn() -> Result<T, StoreError>,
        ticket: impl Fn(&T) -> Ticket,
    ) -> Result<T, StoreError> {
        let appended = self.append_when_free(busy_timeout, append).await?;
        self.wait_until_durable(ticket(&appended), durability).await?;
        Ok(appended)
    }

    /// Calls `append` until the store is not busy, for at most `busy_timeout`.
    pub(crate) async fn append_when_free<T>(
        &self,
        busy_timeout: std::time::Duration,
        append: impl Fn() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut progress = self.fan_out.progress.subscribe();
        let deadline = tokio::time::Instant::now() + busy_timeout;
        loop {
            progress.mark_unchanged();
            match append() {
                Err(busy) if busy.blame() == Blame::Busy => {
                    if tokio::time::timeout_at(deadline, progress.changed()).await.is_err() {
                        return Err(busy);
                    }
                }
                other => return other,
            }
        }
    }

    /// Waits until the rows of a ticket are durable.
    pub(crate) async fn wait_until_durable(
        &self,
        ticket: Ticket,
        durability: Durability,
    ) -> Result<(), StoreError> {
        let mut progress = self.fan_out.progress.subscribe();
        loop {
            progress.mark_unchanged();
            match self.store.outcome(ticket, durability) {
                Outcome::Kept => return Ok(()),
                Outcome::Failed(error) => return Err(error),
                Outcome::Pending => {}
            }
            // The sender lives as long as the hub; an error means that the hub has closed.
            progress.changed().await.map_err(|_| StoreError::Closed)?;
        }
    }
}
