//! Elements as rows of a batch, within the limits on values.

use model::limits::IngestLimits;
use model::{Batch, SeriesId, TimeRange, Timestamp, ValueRef};

/// Adds elements to a batch, all or none, and returns their number. `plausible` has the times that the server takes now.
///
/// # Errors
/// A time is not plausible, a text is too long, or an element has no value.
pub(super) fn add<'v, V>(
    batch: &mut Batch,
    series: SeriesId,
    plausible: &TimeRange,
    limits: &IngestLimits,
    elements: impl IntoIterator<Item = (Timestamp, V)>,
) -> Result<u64, String>
where
    V: IntoIterator<Item = (&'v str, ValueRef<'v>)>,
{
    // Dropped without `finish`, it removes the rows that it has added.
    let mut rows = batch.builder();
    for (ts, values) in elements {
        if !plausible.contains(ts) {
            return Err(format!(
                "the time {} ms is before ingest.oldest or more than {} s in the future (ingest.future_max_s)",
                ts.millis(),
                limits.future_max_s
            ));
        }
        for (key, value) in values {
            check_text(key, value, limits.text_value_bytes_max)?;
            rows.field(key, value);
        }
        if rows.open_fields() == 0 {
            return Err("no field has a value".to_owned());
        }
        rows.row(series, ts);
    }
    let added = rows.rows_added() as u64;
    rows.finish();
    Ok(added)
}

fn check_text(key: &str, value: ValueRef<'_>, bytes_max: usize) -> Result<(), String> {
    match value {
        ValueRef::String(text) | ValueRef::Json(text) if text.len() > bytes_max => Err(format!(
            "the text of {key:?} has {} bytes, the limit is {bytes_max} (ingest.text_value_bytes_max)",
            text.len()
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds elements with one field, whose times are given in microseconds. Times below 10 are plausible.
    fn added(batch: &mut Batch, elements: &[(i64, Option<ValueRef<'static>>)]) -> Result<u64, String> {
        let limits = IngestLimits { text_value_bytes_max: 3, ..IngestLimits::default() };
        let plausible = TimeRange::new(Timestamp::from_micros(0), Timestamp::from_micros(10));
        let elements = elements
            .iter()
            .map(|(us, value)| (Timestamp::from_micros(*us), value.iter().map(|value| ("x", *value))));
        add(batch, SeriesId(1), &plausible, &limits, elements)
    }

    #[test]
    fn elements_are_rows() {
        let mut batch = Batch::new();
        let texts = [(1, Some(ValueRef::I64(1))), (2, Some(ValueRef::String("abc")))];
        assert_eq!(added(&mut batch, &texts), Ok(2));
        assert_eq!(added(&mut batch, &[]), Ok(0));
        assert_eq!((batch.len(), batch.points()), (2, 2));
    }

    #[test]
    fn a_payload_with_one_element_that_is_refused_adds_none() {
        let good = (1, Some(ValueRef::I64(1)));
        let refused = [
            ((10, Some(ValueRef::I64(2))), "ingest.future_max_s"),
            ((2, Some(ValueRef::String("abcd"))), "ingest.text_value_bytes_max"),
            ((2, Some(ValueRef::Json("[12]"))), "ingest.text_value_bytes_max"),
            ((2, None), "no field has a value"),
        ];
        let mut batch = Batch::new();
        added(&mut batch, &[good]).unwrap();
        let before = batch.text_bytes();
        for (bad, part) in refused {
            let reason = added(&mut batch, &[good, bad, good]).unwrap_err();
            assert!(reason.contains(part), "{reason}");
            assert_eq!((batch.len(), batch.points(), batch.text_bytes()), (1, 1, before), "{reason}");
        }
    }
}
