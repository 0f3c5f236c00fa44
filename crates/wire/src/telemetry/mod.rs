//! Decodes telemetry payloads of ThingsBoard devices: from JSON text to rows of a batch.
//!
//! The decoder accepts four forms (ThingsBoard, "Telemetry upload API"): `{"k":v}`, `[{"k":v},...]`,
//! `{"ts":ms,"values":{"k":v}}` and arrays of the last. One array may mix the forms. A payload enters the batch whole or not at
//! all.
//!
//! Rules where the format is silent:
//! - A row without `ts` gets its own time of receipt. `ts` is in milliseconds, as a number or a string with a number. Fractions
//!   are kept down to a microsecond (`time`).
//! - Text that is not JSON may be relaxed JSON (`relaxed`). A byte order mark is skipped.
//! - Keys besides `ts` and `values` belong to the same row; nothing is discarded.
//! - `null` means no value: the key is left out.
//! - An integer outside of `i64` and a number beyond `f64` keep their digits as a JSON value: nothing is rounded.
//! - Objects and arrays are JSON values and keep their text.

mod error;
mod key;
mod relaxed;
mod text;
mod time;
mod value;

use std::cell::RefCell;
use std::fmt;

use model::limits::IngestLimits;
use model::{Batch, BatchBuilder, SeriesId, Timestamp, ValueRef, name};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

pub use error::PayloadError;
use error::over;
pub(crate) use key::Key;
pub(crate) use text::{Failed, read_json};
pub(crate) use value::read_value;

/// Nesting of a payload around a value: an array of rows, a row, its `values`.
const FORM_DEPTH: usize = 3;

/// The time of receipt of a payload.
#[derive(Clone, Copy)]
pub struct Receipt<'a> {
    /// The present time. Times in the payload must be near it.
    pub now: Timestamp,
    /// Returns a time for a row without one: later than all before, so no row overwrites another one and an array keeps its
    /// order.
    pub next: &'a dyn Fn() -> Timestamp,
}

impl fmt::Debug for Receipt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt").field("now", &self.now).finish_non_exhaustive()
    }
}

/// Decodes a payload of `series` into `batch`. On an error the batch is unchanged.
pub fn decode(
    payload: &[u8],
    series: SeriesId,
    receipt: Receipt<'_>,
    limits: &IngestLimits,
    batch: &mut Batch,
) -> Result<(), PayloadError> {
    let depth_max = FORM_DEPTH.saturating_add(limits.json_depth_max);
    read_json(payload, depth_max, |text| decode_json(text, series, receipt, limits, batch))
}

fn decode_json(
    text: &str,
    series: SeriesId,
    receipt: Receipt<'_>,
    limits: &IngestLimits,
    batch: &mut Batch,
) -> Result<(), Failed> {
    let context = Context { series, receipt, limits, refusal: RefCell::new(None) };
    let mut builder = batch.builder();
    let mut json = serde_json::Deserializer::from_str(text);
    let read =
        Payload { context: &context, rows: &mut builder }.deserialize(&mut json).and_then(|()| json.end());
    match (context.refusal.into_inner(), read) {
        (Some(refusal), _) => Err(Failed::Refused(refusal)),
        (None, Err(error)) => {
            let refusal = PayloadError::Json(error.to_string());
            Err(if error.is_data() { Failed::Refused(refusal) } else { Failed::Syntax(refusal) })
        }
        (None, Ok(())) => {
            builder.finish();
            Ok(())
        }
    }
}

struct Context<'a> {
    series: SeriesId,
    receipt: Receipt<'a>,
    limits: &'a IngestLimits,
    // An error of serde is only text; the typed reason is stored here.
    refusal: RefCell<Option<PayloadError>>,
}

impl Context<'_> {
    fn refuse<E: serde::de::Error>(&self, reason: impl Into<PayloadError>) -> E {
        self.refusal.borrow_mut().get_or_insert(reason.into());
        E::custom("refused")
    }

    /// Completes a row. A row without a time gets the time of receipt.
    fn complete_row(&self, ts: Option<Timestamp>, rows: &mut BatchBuilder<'_>) -> Result<(), PayloadError> {
        if rows.open_fields() == 0 {
            return Ok(());
        }
        rows.row(self.series, ts.unwrap_or_else(self.receipt.next));
        over("the number of rows in one message", rows.rows_added(), self.limits.rows_per_message_max)
    }

    /// Adds one key. The tokenizer has checked that the raw text is JSON.
    fn add(&self, key: &str, raw: &str, rows: &mut BatchBuilder<'_>) -> Result<(), PayloadError> {
        name::check_key(key)?;
        let limits = self.limits;
        read_value(raw, limits.json_depth_max, |value| {
            if let ValueRef::String(text) | ValueRef::Json(text) = value {
                over("the length of a value in bytes", text.len(), limits.text_value_bytes_max)?;
                over("the text of one batch in bytes", text.len() + key.len(), rows.text_room_bytes())?;
            }
            rows.field(key, value);
            over("the number of keys in one row", rows.open_fields(), limits.keys_per_row_max)
        })?;
        Ok(())
    }
}

/// The whole payload: one object or an array of them.
struct Payload<'c, 'b, 'd> {
    context: &'c Context<'c>,
    rows: &'b mut BatchBuilder<'d>,
}

impl<'de> DeserializeSeed<'de> for Payload<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Payload<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        RowObject { context: self.context, rows: self.rows }.visit_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(()) = items.next_element_seed(RowObject { context: self.context, rows: self.rows })? {}
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        Err(self.context.refuse(PayloadError::Form("a boolean")))
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        Err(self.context.refuse(PayloadError::Form("a number")))
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        Err(self.context.refuse(PayloadError::Form("a number")))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        Err(self.context.refuse(PayloadError::Form("a number")))
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Err(self.context.refuse(PayloadError::Form("a string")))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Err(self.context.refuse(PayloadError::Form("null")))
    }
}

const TWICE: &str = "ts or values twice in one object";

/// One object: a row with or without its time.
struct RowObject<'c, 'b, 'd> {
    context: &'c Context<'c>,
    rows: &'b mut BatchBuilder<'d>,
}

impl<'de> DeserializeSeed<'de> for RowObject<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowObject<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut ts, mut values): (Option<&RawValue>, Option<&RawValue>) = (None, None);
        while let Some(key) = map.next_key_seed(Key)? {
            let raw: &RawValue = map.next_value()?;
            match key.as_ref() {
                // A second member of the same name would hide the first one.
                "ts" if ts.is_some() => return Err(self.context.refuse(PayloadError::Form(TWICE))),
                "values" if values.is_some() => return Err(self.context.refuse(PayloadError::Form(TWICE))),
                "ts" => ts = Some(raw),
                "values" => values = Some(raw),
                key => self.context.add(key, raw.get(), self.rows).map_err(|why| self.context.refuse(why))?,
            }
        }
        self.finish(ts, values)
    }
}

impl RowObject<'_, '_, '_> {
    fn finish<E: serde::de::Error>(self, ts: Option<&RawValue>, values: Option<&RawValue>) -> Result<(), E> {
        let Self { context, rows } = self;
        let timed = matches!((ts, values), (Some(_), Some(values)) if values.get().starts_with('{'));
        let mut complete = || {
            let mut row_ts = None;
            if let (true, Some(ts), Some(values)) = (timed, ts, values) {
                row_ts = Some(time::timestamp(ts.get(), context.receipt.now, context.limits)?);
                read_values(context, values.get(), rows)?;
            } else {
                // Only both together have the special meaning; alone, each is an ordinary key.
                for (key, raw) in [("ts", ts), ("values", values)] {
                    raw.map_or(Ok(()), |raw| context.add(key, raw.get(), rows))?;
                }
            }
            context.complete_row(row_ts, rows)
        };
        complete().map_err(|why| context.refuse(why))
    }
}

fn read_values(context: &Context<'_>, raw: &str, rows: &mut BatchBuilder<'_>) -> Result<(), PayloadError> {
    let mut json = serde_json::Deserializer::from_str(raw);
    let read = json.deserialize_map(Values { context, rows });
    read.map_err(|error| {
        context.refusal.borrow_mut().take().unwrap_or_else(|| PayloadError::Json(error.to_string()))
    })
}

/// The object under `values`.
struct Values<'c, 'b, 'd> {
    context: &'c Context<'c>,
    rows: &'b mut BatchBuilder<'d>,
}

impl<'de> Visitor<'de> for Values<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of keys and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Key)? {
            let raw: &RawValue = map.next_value()?;
            self.context.add(&key, raw.get(), self.rows).map_err(|why| {
                self.context.refusal.borrow_mut().get_or_insert(why);
                A::Error::custom("refused")
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
