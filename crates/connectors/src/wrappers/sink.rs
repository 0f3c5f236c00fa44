//! Where the elements of a source go: rows of its device, and what callers see of the source.

use std::sync::Arc;
use std::time::Instant;

use hub::caller::Caller;
use hub::clock::system_now;
use hub::{Blame, DeadLetter, Door, Hub, IngestError, Message, SeriesOwner};
use model::{Batch, SeriesId, TimeRange, Timestamp, Value, ValueRef};
use tokio::time::sleep;
use virtual_sensors::{ExternalSource, SourceState, VirtualSensors};

use super::blocking::blocking;
use super::elements;
use super::failure::Failure;
use crate::limits::{
    BUSY_TIMEOUT, DEAD_LETTER_BYTES_MAX, DEAD_LETTERS_PER_APPEND_MAX, ELEMENTS_PER_APPEND_MAX,
    ERROR_CHARACTERS_MAX, OVER_LIMIT_PAUSE,
};

/// The elements of a source on their way into the store.
pub(crate) struct ElementSink {
    hub: Arc<Hub>,
    sensors: Arc<VirtualSensors>,
    caller: Caller,
    source: Arc<ExternalSource>,
    /// The stream and the alias: the topic of dead letters.
    name: String,
    series: Option<SeriesId>,
    begun: Timestamp,
    batch: Batch,
    elements: u64,
    dead_letters: usize,
    plausible: TimeRange,
    state: SourceState,
    reported: Option<SourceState>,
}

impl ElementSink {
    pub(super) fn new(
        hub: Arc<Hub>,
        sensors: Arc<VirtualSensors>,
        caller: Caller,
        source: Arc<ExternalSource>,
    ) -> Self {
        let plausible = hub.limits().plausible(system_now());
        Self {
            hub,
            sensors,
            caller,
            name: source.source(),
            source,
            series: None,
            begun: system_now(),
            batch: Batch::new(),
            elements: 0,
            dead_letters: 0,
            plausible,
            state: SourceState::default(),
            reported: None,
        }
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub(crate) fn sensors(&self) -> &VirtualSensors {
        &self.sensors
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn source(&self) -> &ExternalSource {
        &self.source
    }

    /// When the source began. It stays while the source fails and is read again, so that no row is missed that is made meanwhile.
    pub(crate) fn begun(&self) -> Timestamp {
        self.begun
    }

    /// The series of the device. It is made with the first call.
    pub(crate) fn series(&mut self) -> Result<SeriesId, Failure> {
        match self.series {
            Some(series) => Ok(series),
            None => {
                let series = self.hub.series_of(&self.source.device);
                let series = series.map_err(|error| Failure::while_("cannot store elements", error))?;
                self.series = Some(series);
                Ok(series)
            }
        }
    }

    /// The newest value of a key of the device.
    pub(crate) async fn newest(&mut self, key: &str) -> Result<Option<(Timestamp, Value)>, Failure> {
        let latest = self.latest(Some(vec![key.to_owned()])).await?;
        Ok(latest.into_iter().next())
    }

    /// The time of the newest row of the device.
    pub(crate) async fn newest_time(&mut self) -> Result<Option<Timestamp>, Failure> {
        Ok(self.latest(None).await?.into_iter().map(|(ts, _)| ts).max())
    }

    async fn latest(&mut self, keys: Option<Vec<String>>) -> Result<Vec<(Timestamp, Value)>, Failure> {
        let series = self.series()?;
        let (hub, caller) = (Arc::clone(&self.hub), self.caller.clone());
        blocking(move || {
            let latest = hub.latest(&caller, series, keys.as_deref());
            let latest = latest.map_err(|error| Failure::while_("cannot read the newest element", error))?;
            Ok(latest.into_iter().map(|latest| (latest.ts, latest.value)).collect())
        })
        .await
    }

    /// The place up to which the source was read, as [`keep_place`](Self::keep_place) has stored it.
    pub(crate) async fn stored_place(&self) -> Result<Option<Vec<u8>>, Failure> {
        let (sensors, caller) = (Arc::clone(&self.sensors), self.caller.clone());
        let device = Arc::clone(&self.source.device);
        blocking(move || {
            sensors
                .source_place(&caller, &device)
                .map_err(|error| Failure::while_("cannot read the place in the source", error))
        })
        .await
    }

    /// Stores the place up to which the source was read. The rows up to there must be durable.
    pub(crate) async fn keep_place(&self, place: Vec<u8>) -> Result<(), Failure> {
        let (sensors, caller) = (Arc::clone(&self.sensors), self.caller.clone());
        let device = Arc::clone(&self.source.device);
        blocking(move || {
            sensors
                .set_source_place(&caller, &device, &place)
                .map_err(|error| Failure::while_("cannot store the place in the source", error))
        })
        .await
    }

    /// The source is there and is read.
    pub(crate) fn connected(&mut self) {
        self.state.is_connected = true;
        self.report();
    }

    /// Whether as many elements wait as one append takes.
    pub(crate) fn is_full(&self) -> bool {
        self.batch.is_full() || self.elements as usize >= ELEMENTS_PER_APPEND_MAX
    }

    /// Adds an element.
    ///
    /// # Errors
    /// The time is not plausible, a text is too long, or there is no value.
    pub(crate) fn element<'v>(
        &mut self,
        ts: Timestamp,
        values: impl IntoIterator<Item = (&'v str, ValueRef<'v>)>,
    ) -> Result<(), String> {
        self.elements([(ts, values)])
    }

    /// Adds the elements of one payload, all or none.
    ///
    /// # Errors
    /// As [`Self::element`].
    pub(crate) fn elements<'v, V>(
        &mut self,
        elements: impl IntoIterator<Item = (Timestamp, V)>,
    ) -> Result<(), String>
    where
        V: IntoIterator<Item = (&'v str, ValueRef<'v>)>,
    {
        let series = self.series().map_err(|failure| failure.to_string())?;
        let limits = self.hub.limits();
        if self.elements == 0 {
            // A source may have been silent for longer than the server looks into the future.
            self.plausible = limits.plausible(system_now());
        }
        let added = elements::add(&mut self.batch, series, &self.plausible, limits, elements)?;
        self.elements += added;
        Ok(())
    }

    /// An element that cannot be read is counted, named, and kept as a dead letter.
    pub(crate) fn refuse(&mut self, reason: &str, payload: &[u8]) {
        self.state.refused += 1;
        self.error(reason);
        self.dead_letters += 1;
        if self.dead_letters > DEAD_LETTERS_PER_APPEND_MAX {
            return;
        }
        let payload = &payload[..payload.len().min(DEAD_LETTER_BYTES_MAX)];
        let dead_letter = DeadLetter { door: Door::Connector.name(), topic: &self.name, reason, payload };
        if let Err(error) = self.hub.add_dead_letter(&self.source.device, dead_letter, &mut self.batch) {
            self.error(&format!("{reason}; it is not kept: {error}"));
        }
    }

    /// Elements of a source that cannot wait came while the server was busy.
    pub(crate) fn dropped(&mut self, elements: u64) {
        if elements > 0 {
            self.state.dropped += elements;
            self.error("elements came faster than the server stores them, and the source cannot wait");
        }
    }

    /// Stores the elements, and returns when they are durable. Waits as long as the server is busy. `payload` is what they were made of,
    /// for a dead letter.
    pub(crate) async fn store(&mut self, payload: &[u8]) -> Result<(), Failure> {
        if self.batch.is_empty() {
            self.report();
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let elements = std::mem::take(&mut self.elements);
        self.dead_letters = 0;
        let kept = self.append(&batch, payload).await?;
        match kept {
            None => self.state.elements += elements,
            Some((reason, true)) => {
                self.state.refused += elements;
                self.error(&reason);
            }
            Some((reason, false)) => {
                self.state.elements += elements;
                self.error(&reason);
            }
        }
        let door = self.hub.metrics().door(Door::Connector);
        door.messages.inc_by(elements);
        door.bytes.inc_by(payload.len() as u64);
        self.hub.device_heard(&self.source.device);
        self.batch = batch;
        self.batch.clear();
        self.report();
        Ok(())
    }

    /// Appends when the server takes the rows. A refusal states why, and whether all of them are refused.
    async fn append(&mut self, batch: &Batch, payload: &[u8]) -> Result<Option<(String, bool)>, Failure> {
        let hub = Arc::clone(&self.hub);
        let source = Arc::clone(&self.source);
        let owner = SeriesOwner::from(&source.device);
        let (tenant, durability) = (owner.tenant, owner.durability);
        let payload = &payload[..payload.len().min(DEAD_LETTER_BYTES_MAX)];
        let name = self.name.clone();
        let message = Message { owner, door: Door::Connector, topic: &name, payload };
        let load = hub.tenant_load(tenant);
        loop {
            if let Err(over) = load.check_points(Instant::now()) {
                self.error(&over.to_string());
                self.report();
                sleep(OVER_LIMIT_PAUSE).await;
                continue;
            }
            match hub.ingest_message_and_wait(&message, batch, durability, BUSY_TIMEOUT).await {
                Ok(kept) => {
                    load.add_points(batch.points(), Instant::now());
                    return Ok(kept.refusal.map(|refusal| (refusal.reason, refusal.whole)));
                }
                Err(error) if is_busy(&error) => {
                    self.error(&error.to_string());
                    self.report();
                }
                Err(error) => {
                    // The series may be another one after this.
                    self.series = None;
                    return Err(Failure::while_("cannot store elements", error));
                }
            }
        }
    }

    /// The source has failed. Returns whether it was read before.
    pub(super) fn fail(&mut self, failure: &Failure) -> bool {
        let worked = std::mem::replace(&mut self.state.is_connected, false);
        self.batch.clear();
        (self.elements, self.dead_letters, self.series) = (0, 0, None);
        self.state.failures += 1;
        self.error(&failure.to_string());
        self.report();
        worked
    }

    /// How many times the source has failed.
    pub(super) fn failures(&self) -> u64 {
        self.state.failures
    }

    fn error(&mut self, reason: &str) {
        self.state.last_error = Some(reason.chars().take(ERROR_CHARACTERS_MAX).collect());
    }

    /// Shows callers what the source has done.
    pub(super) fn report(&mut self) {
        if self.reported.as_ref() == Some(&self.state) {
            return;
        }
        if let Err(error) = self.sensors.report_source(&self.caller, &self.source, self.state.clone()) {
            tracing::debug!(%error, source = self.name, "the state of a source is not shown");
        }
        self.reported = Some(self.state.clone());
    }
}

fn is_busy(error: &IngestError) -> bool {
    error.blame() == Blame::Busy
}
