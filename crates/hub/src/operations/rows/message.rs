//! Stores one message of a device: as rows as far as the limits allow, and the rest as a dead letter. All doors that receive
//! messages of devices use this, so the server keeps refused content of every door.

use std::ops::Range;
use std::time::Duration;

use model::{Batch, SeriesId, Timestamp, ValueRef};
use store::{Blame, Durability, RefusedRow, StoreError, Ticket};

use crate::dead_letter::DeadLetter;
use crate::hub::Hub;
use crate::metrics::Door;
use crate::new_columns;
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
pub struct StoredMessage {
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

/// Rows in a batch, some of which the store refuses.
#[derive(Debug, Clone)]
pub struct RefusedPart<'a> {
    pub batch: &'a Batch,
    pub rows: Range<usize>,
    /// What the store refuses of them: at least one row, ascending. The numbers are those of the batch.
    pub refused: &'a [RefusedRow],
}

/// Appends of one message: the store may refuse rows for one reason after the other, and new columns may be used up meanwhile.
const APPENDS_MAX: usize = 8;

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
    ) -> Result<StoredMessage, StoreError> {
        let (mut instead, mut refusal): (Option<Batch>, _) = (None, None);
        let mut appends = 0;
        loop {
            let batch = instead.as_ref().unwrap_or(batch);
            appends += 1;
            let error = match self.ingest(batch, durability) {
                Ok(ticket) => return Ok(StoredMessage { ticket, refusal }),
                Err(error) if error.blame() != Blame::Caller || appends >= APPENDS_MAX => return Err(error),
                Err(error) => error,
            };
            let StoreError::Rows(refused) = error else {
                return self.keep_whole(message, error.to_string(), durability);
            };
            let mut rows = Batch::new();
            let part = RefusedPart { batch, rows: 0..batch.len(), refused: refused.rows() };
            match self.rows_instead(message, &part, &mut rows)? {
                Some(MessageRefusal { reason, whole: true }) => {
                    return self.keep_whole(message, reason, durability);
                }
                Some(part) => drop(refusal.insert(part)),
                None => {}
            }
            instead = Some(rows);
        }
    }

    fn keep_whole(
        &self,
        message: &Message<'_>,
        reason: String,
        durability: Durability,
    ) -> Result<StoredMessage, StoreError> {
        let ticket = self.ingest_dead_letter(message, &reason, durability)?;
        Ok(StoredMessage { ticket, refusal: Some(MessageRefusal { reason, whole: true }) })
    }

    /// Adds to `to` what is kept of a message instead of its rows: the rows in the series that the device has now, if the series was
    /// deleted after the door looked it up; otherwise the keys that may get a column, and the others as a dead letter; or the whole
    /// message as a dead letter. Returns the refusal.
    ///
    /// # Errors
    /// The series cannot be made, so `to` has nothing of the message. On [`StoreError::Busy`] try again.
    pub fn rows_instead(
        &self,
        message: &Message<'_>,
        part: &RefusedPart<'_>,
        to: &mut Batch,
    ) -> Result<Option<MessageRefusal>, StoreError> {
        let refused_whole = part.refused.iter().find(|refused| refused.fields.is_empty());
        if part.is_gone() {
            part.move_to(self.series_of(&message.owner)?, to);
            return Ok(None);
        }
        let dead_letters = self.dead_letter_series(&message.owner)?;
        let of_columns = new_columns::reason(&message.sender(), part.batch, part.refused);
        let (reason, refused_keys) = match (of_columns, refused_whole) {
            (Some(reason), _) => (reason, part.split(to)),
            (None, Some(row)) => (row.reason.to_string(), None),
            (None, None) => (part.refused[0].reason.to_string(), None),
        };
        let payload = refused_keys.as_deref().map_or(message.payload, str::as_bytes);
        self.add_dead_letter_row(dead_letters, message.dead_letter(&reason, payload), to);
        Ok(Some(MessageRefusal { reason, whole: refused_keys.is_none() }))
    }

    /// Adds dead letters to `to` in the series that a device or an asset has for them now, because their series was deleted.
    ///
    /// # Errors
    /// The series cannot be made, or the store refuses the dead letters for something else; `to` has none of them.
    pub fn dead_letters_instead<'a>(
        &self,
        owner: impl Into<SeriesOwner<'a>>,
        part: &RefusedPart<'_>,
        to: &mut Batch,
    ) -> Result<(), StoreError> {
        if !part.is_gone() {
            return Err(part.refused[0].reason.clone());
        }
        part.move_to(self.dead_letter_series(&owner.into())?, to);
        Ok(())
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
        self.add_dead_letter(&message.owner, message.dead_letter(reason, message.payload), &mut batch)?;
        self.ingest_dead_letters(&message.owner, &batch, durability)
    }

    /// Appends dead letters of one device or asset ([`add_dead_letter`](Self::add_dead_letter)), also if the series of its dead letters was
    /// deleted meanwhile.
    ///
    /// # Errors
    /// The errors of [`ingest`](Self::ingest).
    pub fn ingest_dead_letters<'a>(
        &self,
        owner: impl Into<SeriesOwner<'a>>,
        batch: &Batch,
        durability: Durability,
    ) -> Result<Ticket, StoreError> {
        match self.ingest(batch, durability) {
            Err(StoreError::Rows(refused)) => {
                let mut moved = Batch::new();
                let part = RefusedPart { batch, rows: 0..batch.len(), refused: refused.rows() };
                self.dead_letters_instead(owner, &part, &mut moved)?;
                self.ingest(&moved, durability)
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
    ) -> Result<StoredMessage, StoreError> {
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
}

impl<'a> Message<'a> {
    fn sender(&self) -> String {
        format!("the {} {}", self.owner.tag, self.owner.name)
    }

    fn dead_letter(&self, reason: &'a str, payload: &'a [u8]) -> DeadLetter<'a> {
        DeadLetter { door: self.door.name(), topic: self.topic, reason, payload }
    }
}

impl RefusedPart<'_> {
    /// Whether the rows are of one series, which the store does not know any more.
    fn is_gone(&self) -> bool {
        let mut series = self.rows.clone().map(|row| self.batch.row(row).series());
        let first = series.next();
        self.refused.iter().all(RefusedRow::is_of_unknown_series)
            && series.all(|of_row| Some(of_row) == first)
    }

    /// Adds the rows in another series.
    fn move_to(&self, series: SeriesId, to: &mut Batch) {
        let mut builder = to.builder();
        for row in self.rows.clone().map(|row| self.batch.row(row)) {
            row.fields().for_each(|field| builder.field(field.key, field.value));
            builder.row(series, row.ts());
        }
        builder.finish();
    }

    /// Adds the rows without the refused fields, and returns these as a payload that a device could send. A row without other fields
    /// is left out. `None` if none is left; then it adds nothing.
    fn split(&self, to: &mut Batch) -> Option<String> {
        let mut builder = to.builder();
        let mut refused_rows = Vec::new();
        let mut refused = self.refused.iter().peekable();
        for (index, row) in self.rows.clone().map(|index| (index, self.batch.row(index))) {
            let fields =
                refused.next_if(|refused| refused.row == index).map_or(&[][..], |refused| &refused.fields);
            let mut values = Vec::new();
            for (number, field) in row.fields().enumerate() {
                match fields.contains(&number) {
                    true => values.push(format!("{}:{}", json(field.key), json_value(field.value))),
                    false => builder.field(field.key, field.value),
                }
            }
            if builder.open_fields() > 0 {
                builder.row(row.series(), row.ts());
            }
            if !values.is_empty() {
                let ts = milliseconds(row.ts());
                refused_rows.push(format!("{{\"ts\":{ts},\"values\":{{{}}}}}", values.join(",")));
            }
        }
        let is_empty = builder.rows_added() == 0;
        builder.finish();
        (!is_empty).then(|| format!("[{}]", refused_rows.join(",")))
    }
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
        let refused = |row, fields| RefusedRow { row, fields, reason: StoreError::Closed };
        let refused = [refused(0, vec![1]), refused(1, vec![1]), refused(2, vec![0, 1])];
        let mut allowed = Batch::new();
        let part = RefusedPart { batch: &batch, rows: 0..3, refused: &refused };
        let rest = part.split(&mut allowed).unwrap();
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
        let last = RefusedPart { batch: &batch, rows: 2..3, refused: &refused[2..] };
        assert_eq!((last.split(&mut allowed), allowed.len()), (None, 2), "nothing is left of it");
    }
}
