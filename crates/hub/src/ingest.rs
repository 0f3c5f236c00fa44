//! The way in: series of devices, batches, dead letters, and waiting for durability.

use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use model::limits::IngestLimits;
use model::{Batch, SeriesId, SeriesKey, Timestamp, ValueRef};
use parking_lot::{Condvar, Mutex};
use store::{Blame, Durability, Progress, ProgressWatcher, Sequence, StoreError};
use tokio::sync::watch;

use crate::Hub;
use crate::live::Live;
use crate::registry::Device;

/// The table that keeps what was refused.
pub const DEAD_LETTER_TABLE: &str = "dead_letter";

/// What its rows may have.
pub(crate) const DEAD_LETTER_KEYS: [&str; 5] = ["door", "topic", "reason", "payload", "payload_base64"];

/// A payload that cannot be taken, on its way into [`DEAD_LETTER_TABLE`].
#[derive(Debug, Clone, Copy)]
pub struct DeadLetter<'a> {
    /// The door it came through.
    pub door: &'static str,
    /// The topic or path it was sent to.
    pub topic: &'a str,
    /// Why it was refused, in words for its sender.
    pub reason: &'a str,
    /// What was sent, byte for byte.
    pub payload: &'a [u8],
}

impl Hub {
    /// The series that a device writes to; created when the device reports for the first time.
    pub fn series_of(&self, device: &Device) -> Result<SeriesId, StoreError> {
        self.store.series(&SeriesKey::device(&device.profile.table, &device.name)?)
    }

    /// The series that a device writes to, if it has reported yet. Creates nothing, so it serves readers of a store
    /// that takes no writes.
    pub fn find_series_of(&self, device: &Device) -> Result<Option<SeriesId>, StoreError> {
        Ok(self.store.find_series(&SeriesKey::device(&device.profile.table, &device.name)?))
    }

    /// Appends a batch. The caller may ack when [`Progress::reached`] of `durability` passes the returned sequence.
    ///
    /// A batch that needs more columns than its devices may add is refused whole;
    /// [`ingest_message`](Self::ingest_message) takes a message apart.
    ///
    /// On [`StoreError::Busy`] nothing was taken: keep the batch, stop reading, try again at the next progress.
    pub fn ingest(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError> {
        let sequence = match self.store.append_known(batch, durability)? {
            Some(sequence) => sequence,
            None => self.append_with_new_columns(batch, durability)?,
        };
        self.taken(batch, sequence, durability);
        Ok(sequence)
    }

    /// Appends a batch that needs new columns; all or nothing.
    fn append_with_new_columns(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError> {
        let mut counts = self.new_columns.lock();
        let now = Instant::now();
        let missing = self.store.missing_columns(batch)?;
        let plan = self.new_columns.plan(&counts, &missing, now);
        if let Some(over) = plan.error() {
            return Err(over);
        }
        let sequence = self.store.append(batch, durability)?;
        counts.add(&plan, &missing, now);
        Ok(sequence)
    }

    /// Counts what was appended and brings it to live subscribers.
    pub(crate) fn taken(&self, batch: &Batch, sequence: Sequence, durability: Durability) {
        self.metrics.appended(durability, batch.len() as u64, batch.points() as u64);
        let queued = self.live.queue(batch, sequence, durability);
        if queued && self.store.progress().reached(durability) >= sequence {
            // The progress that covers these rows was announced before they were queued.
            self.fan_out.wake_up();
        }
    }

    /// Adds a refused payload to `batch` as a row of the dead-letter table. It is kept once the batch is.
    ///
    /// Fields: `door`, `topic`, `reason`, and the payload as `payload` when it is text or else as `payload_base64`;
    /// both give back every byte.
    pub fn add_dead_letter(
        &self,
        device: &Device,
        letter: DeadLetter<'_>,
        batch: &mut Batch,
    ) -> Result<(), StoreError> {
        let series = self.store.series(&SeriesKey::device(DEAD_LETTER_TABLE, &device.name)?)?;
        let mut row = batch.builder();
        row.field("door", ValueRef::String(letter.door));
        row.field("topic", ValueRef::String(letter.topic));
        row.field("reason", ValueRef::String(letter.reason));
        match std::str::from_utf8(letter.payload) {
            Ok(text) => row.field("payload", ValueRef::String(text)),
            Err(_) => row.field("payload_base64", ValueRef::String(&BASE64_STANDARD.encode(letter.payload))),
        }
        // Receipt times never repeat, so no dead letter overwrites another.
        row.row(series, self.clock.next());
        row.finish();
        Ok(())
    }

    /// Bounds on payloads of one device: those of all, and for how long its table keeps rows.
    pub fn limits_of(&self, device: &Device) -> IngestLimits {
        IngestLimits { ttl: self.ttl(&device.profile.table), ..self.limits.clone() }
    }

    /// A receipt time for a row that has no time of its own: later than all before ([`crate::clock::ReceiptClock`]).
    pub fn receipt_time(&self) -> Timestamp {
        self.clock.next()
    }

    /// How far the store has come.
    pub fn progress(&self) -> Progress {
        self.store.progress()
    }

    /// Calls `watcher` whenever the store has come further or a busy store has room again.
    pub fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.store.watch(watcher);
    }

    /// Appends a batch and waits until it is as durable as asked. Waits out a busy store for at most `patience`.
    ///
    /// For doors with one request at a time; the MQTT door keeps many batches in flight and watches progress itself.
    pub async fn ingest_and_wait(
        &self,
        batch: &Batch,
        durability: Durability,
        patience: std::time::Duration,
    ) -> Result<Sequence, StoreError> {
        self.take_and_wait(durability, patience, || self.ingest(batch, durability), |sequence| *sequence)
            .await
    }

    /// Waits out a busy store until `take` succeeds, and then until the sequence of what it took is as durable as asked.
    pub(crate) async fn take_and_wait<T>(
        &self,
        durability: Durability,
        patience: std::time::Duration,
        take: impl Fn() -> Result<T, StoreError>,
        sequence: impl Fn(&T) -> Sequence,
    ) -> Result<T, StoreError> {
        let mut progress = self.fan_out.progress.subscribe();
        let deadline = tokio::time::Instant::now() + patience;
        let taken = loop {
            progress.mark_unchanged();
            match take() {
                Err(busy) if busy.blame() == Blame::Busy => {
                    if tokio::time::timeout_at(deadline, progress.changed()).await.is_err() {
                        return Err(busy);
                    }
                }
                other => break other?,
            }
        };
        loop {
            let now = self.store.progress();
            if now.reached(durability) >= sequence(&taken) {
                return Ok(taken);
            }
            if now.sealed {
                let cause = self.store.status().sealed.unwrap_or_else(|| "a write failed".into());
                return Err(StoreError::Sealed { cause });
            }
            // The sender lives as long as the hub; an error means that the hub is going away.
            progress.changed().await.map_err(|_| StoreError::Closed)?;
        }
    }
}

/// Brings progress of the store to those who wait for it outside of the store's thread.
#[derive(Debug)]
pub(crate) struct FanOut {
    progress: watch::Sender<Progress>,
    live: Arc<Live>,
    wake: Mutex<Wake>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct Wake {
    news: bool,
    stop: bool,
}

impl FanOut {
    pub(crate) fn new(live: Arc<Live>) -> Self {
        Self {
            progress: watch::Sender::new(Progress::default()),
            live,
            wake: Mutex::default(),
            woken: Condvar::new(),
        }
    }

    /// Delivers to live subscribers until told to stop; runs on a thread of its own so that no subscriber costs the
    /// committer anything.
    pub(crate) fn run(&self, progress: impl Fn() -> Progress) {
        loop {
            {
                let mut wake = self.wake.lock();
                self.woken.wait_while(&mut wake, |wake| !wake.news && !wake.stop);
                if wake.stop {
                    return;
                }
                wake.news = false;
            }
            self.live.deliver(progress());
        }
    }

    pub(crate) fn stop(&self) {
        self.wake.lock().stop = true;
        self.woken.notify_all();
    }

    fn wake_up(&self) {
        self.wake.lock().news = true;
        self.woken.notify_one();
    }
}

impl ProgressWatcher for FanOut {
    fn progress(&self, progress: Progress) {
        if self.progress.receiver_count() > 0 {
            self.progress.send_replace(progress);
        }
        if self.live.has_pending() {
            self.wake_up();
        }
    }
}
