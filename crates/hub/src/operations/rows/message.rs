//! Stores one message of a device: as rows as far as the limits allow, and the rest as a dead letter. All doors that receive
//! messages of devices use this, so the server keeps refused content of every door.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use model::{Batch, FieldType, SeriesId, Timestamp, ValueRef};
use store::{Blame, Durability, StoreError, Ticket};

use crate::dead_letter::DeadLetter;
use crate::hub::Hub;
use crate::metrics::Door;
use crate::series_owner::SeriesOwner;

/// A message with the device or asset whose values it has.
#[derive(Debug, Clone)]
pub struct Message<'a> {
    /// The device or asset.
    pub owner: SeriesOwner<'a>,
    /// The door that received it.
    pub door: Door,
    /// The topic or path of the message.
    pub topic: &'a str,
    /// The payload, byte for byte.
    pub payload: &'a [u8],
}

/// The result of storing a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The ticket of the rows and the dead letter.
    pub ticket: Ticket,
    /// The refusal, if the message or some of its keys became a dead letter.
    pub refusal: Option<MessageRefusal>,
}

/// A refused message, or refused keys of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRefusal {
    /// The reason, in words for the sender.
    pub reason: String,
    /// Whether the whole message was refused. Otherwise the message counts as accepted.
    pub whole: bool,
}

impl Hub {
    /// Appends the rows of one message. Keys that may not get a column, and a message that the store refuses, become one dead
    /// letter in the same step. The caller may ack as for [`ingest`](Self::ingest).
    ///
    /// # Errors
    /// The message can be stored neither as rows nor as a dead letter, so the caller must not ack it. On
    /// [`StoreError::Busy`] try again.
    pub fn ingest_message(
        &self,
        message: &Message<'_>,
        batch: &Batch,
        durability: Durability,
    ) -> Result<Kept, StoreError> {
        match self.ingest_resolved(message, batch, durability) {
            Err(StoreError::UnknownSeries(_)) => {
                // The series was deleted after the door looked it up.
                let moved = moved_to(batch, self.series_of(&message.owner)?);
                self.ingest_resolved(message, &moved, durability)
            }
            done => done,
        }
    }

    /// Like [`ingest_message`](Self::ingest_message), but returns the error if a series is unknown.
    fn ingest_resolved(
        &self,
        message: &Message<'_>,
        batch: &Batch,
        durability: Durability,
    ) -> Result<Kept, StoreError> {
        let is_final = |error: &StoreError| {
            error.blame() != Blame::Caller || matches!(error, StoreError::UnknownSeries(_))
        };
        let error = match self.ingest(batch, durability) {
            Ok(ticket) => return Ok(Kept { ticket, refusal: None }),
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => error,
        };
        match self.ingest_allowed(message, batch, durability) {
            Ok(Some(kept)) => return Ok(kept),
            Err(other) if is_final(&other) => return Err(other),
            // The columns are not the reason, or the store refuses the other keys too.
            Ok(None) | Err(_) => {}
        }
        let reason = error.to_string();
        let ticket = self.ingest_dead_letter(message, &reason, durability)?;
        Ok(Kept { ticket, refusal: Some(MessageRefusal { reason, whole: true }) })
    }

    /// Stores a message as a dead letter.
    ///
    /// # Errors
    /// Like [`ingest_message`](Self::ingest_message).
    pub fn ingest_dead_letter(
        &self,
        message: &Message<'_>,
        reason: &str,
        durability: Durability,
    ) -> Result<Ticket, StoreError> {
        let mut batch = Batch::new();
        self.add_dead_letter(&message.owner, message.letter(reason, message.payload), &mut batch)?;
        self.ingest_letters(&message.owner, &batch, durability)
    }

    /// Appends dead letters of one device or asset ([`add_dead_letter`](Self::add_dead_letter)), also if the series of its dead letters was
    /// deleted meanwhile.
    ///
    /// # Errors
    /// Those of [`ingest`](Self::ingest).
    pub fn ingest_letters<'a>(
        &self,
        owner: impl Into<SeriesOwner<'a>>,
        batch: &Batch,
        durability: Durability,
    ) -> Result<Ticket, StoreError> {
        match self.ingest(batch, durability) {
            Err(StoreError::UnknownSeries(_)) => {
                self.ingest(&moved_to(batch, self.letters_of(&owner.into())?), durability)
            }
            done => done,
        }
    }

    /// Like [`ingest_message`](Self::ingest_message), and waits for durability. Waits for a busy store for at most
    /// `busy_timeout`.
    pub async fn ingest_message_and_wait(
        &self,
        message: &Message<'_>,
        batch: &Batch,
        durability: Durability,
        busy_timeout: Duration,
    ) -> Result<Kept, StoreError> {
        let take = || self.ingest_message(message, batch, durability);
        self.append_and_wait(durability, busy_timeout, take, |kept| kept.ticket).await
    }

    /// Like [`ingest_dead_letter`](Self::ingest_dead_letter), and waits for durability.
    pub async fn ingest_dead_letter_and_wait(
        &self,
        message: &Message<'_>,
        reason: &str,
        durability: Durability,
        busy_timeout: Duration,
    ) -> Result<Ticket, StoreError> {
        let take = || self.ingest_dead_letter(message, reason, durability);
        self.append_and_wait(durability, busy_timeout, take, |ticket| *ticket).await
    }

    /// Appends the keys of a message that the bounds on new columns allow; `None` if they allow all keys.
    fn ingest_allowed(
        &self,
        message: &Message<'_>,
        batch: &Batch,
        durability: Durability,
    ) -> Result<Option<Kept>, StoreError> {
        let mut counts = self.new_columns.lock();
        let now = Instant::now();
        let missing = self.store.missing_columns(batch)?;
        let plan = self.new_columns.plan(&counts, &missing, now);
        let Some(reason) = plan.reason(&message.sender(), &missing) else { return Ok(None) };
        let (mut allowed, refused_keys) = split(batch, &plan.refused(&missing));
        let whole = allowed.is_empty();
        let payload = if whole { message.payload } else { refused_keys.as_bytes() };
        self.add_dead_letter(&message.owner, message.letter(&reason, payload), &mut allowed)?;
        let sequence = self.store.append(&allowed, durability)?;
        counts.add(&plan, &missing, now);
        drop(counts);
        self.count_and_queue(&allowed, sequence, durability);
        let ticket = Ticket::of_rows(sequence, allowed.len());
        Ok(Some(Kept { ticket, refusal: Some(MessageRefusal { reason, whole }) }))
    }
}

impl<'a> Message<'a> {
    fn sender(&self) -> String {
        format!("the {} {}", self.owner.tag, self.owner.name)
    }

    fn letter(&self, reason: &'a str, payload: &'a [u8]) -> DeadLetter<'a> {
        DeadLetter { door: self.door.name(), topic: self.topic, reason, payload }
    }
}

/// The rows of a batch in another series.
fn moved_to(batch: &Batch, series: SeriesId) -> Batch {
    let mut moved = Batch::new();
    let mut builder = moved.builder();
    for row in batch.rows() {
        row.fields().for_each(|field| builder.field(field.key, field.value));
        builder.row(series, row.ts());
    }
    builder.finish();
    moved
}

/// Splits a batch: the rows without the refused keys, and the refused keys as a payload that a device could send. A row
/// without allowed keys is left out.
fn split(batch: &Batch, refused: &HashSet<(&str, FieldType)>) -> (Batch, String) {
    let mut allowed = Batch::new();
    let mut builder = allowed.builder();
    let mut rows = Vec::new();
    for row in batch.rows() {
        let mut values = Vec::new();
        for field in row.fields() {
            match refused.contains(&(field.key, field.value.field_type())) {
                true => values.push(format!("{}:{}", json(field.key), json_value(field.value))),
                false => builder.field(field.key, field.value),
            }
        }
        if builder.open_fields() > 0 {
            builder.row(row.series(), row.ts());
        }
        if !values.is_empty() {
            rows.push(format!("{{\"ts\":{},\"values\":{{{}}}}}", milliseconds(row.ts()), values.join(",")));
        }
    }
    builder.finish();
    (allowed, format!("[{}]", rows.join(",")))
}

fn json_value(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Bool(value) => value.to_string(),
        ValueRef::I64(value) => value.to_string(),
        ValueRef::F64(value) => json(&value),
        ValueRef::String(text) => json(text),
        ValueRef::Json(text) => text.to_owned(),
    }
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("BUG: text and numbers can be written as JSON")
}

/// A time in milliseconds, as devices send it, with microseconds as decimals.
fn milliseconds(ts: Timestamp) -> String {
    let sign = if ts.micros() < 0 { "-" } else { "" };
    let micros = ts.micros().unsigned_abs();
    match micros % 1_000 {
        0 => format!("{sign}{}", micros / 1_000),
        rest => format!("{sign}{}.{rest:03}", micros / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_keys_are_a_payload_of_their_own() {
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        builder.field("a", ValueRef::I64(1));
        builder.field("n\"", ValueRef::F64(2.0));
        builder.row(SeriesId(1), Timestamp::from_micros(1_500_250));
        builder.field("n\"", ValueRef::I64(3));
        builder.field("t", ValueRef::String("x\ny"));
        builder.row(SeriesId(1), Timestamp::from_micros(-2_000));
        builder.field("j", ValueRef::Json("[1, 2]"));
        builder.field("b", ValueRef::Bool(true));
        builder.row(SeriesId(1), Timestamp::from_micros(-1_500));
        builder.finish();
        let refused = [
            ("n\"", FieldType::F64),
            ("t", FieldType::String),
            ("j", FieldType::Json),
            ("b", FieldType::Bool),
        ];
        let (allowed, rest) = split(&batch, &refused.into_iter().collect());
        let rows: Vec<_> = allowed
            .rows()
            .map(|row| row.fields().map(|field| field.key.to_owned()).collect::<Vec<_>>())
            .collect();
        assert_eq!(rows, [["a"], ["n\""]]);
        assert_eq!(
            rest,
            r#"[{"ts":1500.250,"values":{"n\"":2.0}},{"ts":-2,"values":{"t":"x\ny"}},{"ts":-1.500,"values":{"j":[1, 2],"b":true}}]"#
        );
        assert!(serde_json::from_str::<serde_json::Value>(&rest).is_ok());
    }
}
