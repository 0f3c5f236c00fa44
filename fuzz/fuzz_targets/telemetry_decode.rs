//! Telemetry payloads: refused without a trace, or understood; what was understood can be said again and means the same.
//!
//! The first byte of the input chooses the limits (usual or tiny), the rest is the payload.

#![no_main]

use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use model::limits::IngestLimits;
use model::{Batch, SeriesId, Timestamp, Value, ValueRef, name};
use wire::telemetry::{PayloadError, Receipt, decode};

const SERIES: SeriesId = SeriesId(7);
const RECEIVED: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fuzz_target!(|input: &[u8]| {
    let Some((&choice, payload)) = input.split_first() else { return };
    let limits = if choice % 2 == 0 { IngestLimits::default() } else { tiny() };
    let mut batch = Batch::new();
    read(br#"{"earlier":"row"}"#, &limits, &mut batch).expect("it is valid");
    let before = rows(&batch, 0);
    match read(payload, &limits, &mut batch) {
        Err(refusal) => {
            assert!(!refusal.to_string().is_empty() && !refusal.label().is_empty());
            // The batch's own numbers show text that no row refers to.
            assert_eq!((batch.points(), batch.text_bytes()), (1, "earlierrow".len()), "{refusal}");
        }
        Ok(()) => {
            keeps_the_limits(&batch, &limits);
            comes_back(&batch, &limits);
        }
    }
    assert_eq!(rows(&batch, 0)[..1], before, "the earlier row has changed");
});

fn read(payload: &[u8], limits: &IngestLimits, batch: &mut Batch) -> Result<(), PayloadError> {
    let given = std::cell::Cell::new(RECEIVED);
    let next = || given.replace(given.get().saturating_add_micros(1));
    decode(payload, SERIES, Receipt { now: RECEIVED, next: &next }, limits, batch)
}

/// Limits that short payloads meet.
fn tiny() -> IngestLimits {
    IngestLimits {
        keys_per_row_max: 3,
        rows_per_message_max: 2,
        text_value_bytes_max: 8,
        json_depth_max: 2,
        future_max_s: 1,
        ..IngestLimits::default()
    }
}

/// Time and fields of the rows from `first` on.
fn rows(batch: &Batch, first: usize) -> Vec<(i64, Vec<(String, Value)>)> {
    let rows = batch.rows().skip(first);
    let fields = |row: model::RowRef<'_>| {
        row.fields().map(|field| (field.key.to_owned(), field.value.to_owned())).collect()
    };
    rows.map(|row| (row.ts().micros(), fields(row))).collect()
}

fn keeps_the_limits(batch: &Batch, limits: &IngestLimits) {
    assert!(batch.len() - 1 <= limits.rows_per_message_max);
    let newest = RECEIVED.saturating_add_micros(limits.future_max_s * 1_000_000);
    for row in batch.rows().skip(1) {
        assert!(row.series() == SERIES && (limits.oldest..=newest).contains(&row.ts()));
        assert!((1..=limits.keys_per_row_max).contains(&row.fields().len()));
        for field in row.fields() {
            assert_eq!(name::check_key(field.key), Ok(()));
            match field.value {
                ValueRef::F64(number) => assert!(number.is_finite()),
                ValueRef::String(text) | ValueRef::Json(text) => {
                    assert!(text.len() <= limits.text_value_bytes_max);
                }
                ValueRef::Bool(_) | ValueRef::I64(_) => {}
            }
        }
    }
}

/// All rows can be said in the form with time and values.
fn comes_back(batch: &Batch, limits: &IngestLimits) {
    let text = text_of(batch);
    let mut again = Batch::new();
    if let Err(refusal) = read(text.as_bytes(), limits, &mut again) {
        panic!("refused when said again: {refusal}: {text}");
    }
    assert_eq!(rows(&again, 0), rows(batch, 1), "{text}");
    // Equal numbers may differ in their sign: the text tells.
    let mut with_earlier = Batch::new();
    read(br#"{"earlier":"row"}"#, limits, &mut with_earlier).expect("it is valid");
    read(text.as_bytes(), limits, &mut with_earlier).expect("it was valid before");
    assert_eq!(text_of(&with_earlier), text);
}

fn text_of(batch: &Batch) -> String {
    let mut text = String::from("[");
    for (index, row) in batch.rows().skip(1).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Milliseconds with three digits behind the point: every microsecond.
        let (millis, micros) = (row.ts().millis(), row.ts().micros().rem_euclid(1_000));
        write!(text, r#"{comma}{{"ts":{millis}.{micros:03},"values":{{"#).expect("memory");
        for (index, field) in row.fields().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(text, "{comma}{}:", quoted(field.key)).expect("memory");
            match field.value {
                ValueRef::Bool(value) => write!(text, "{value}"),
                ValueRef::I64(value) => write!(text, "{value}"),
                // Always with a point or an exponent, and with all digits that the number needs.
                ValueRef::F64(value) => write!(text, "{value:?}"),
                ValueRef::String(value) => write!(text, "{}", quoted(value)),
                ValueRef::Json(value) => write!(text, "{value}"),
            }
            .expect("memory");
        }
        text.push_str("}}");
    }
    text + "]"
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON when quoted")
}
