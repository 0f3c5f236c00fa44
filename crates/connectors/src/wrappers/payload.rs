//! Elements from payloads of devices and answers of addresses: text as it is, or JSON.

use hub::clock::system_now;
use model::{Batch, ValueRef};
use wire::telemetry::{Receipt, decode};

use super::sink::ElementSink;
use crate::limits::RAW_COPIES_BYTES_MAX;

/// The fields that the server itself gives besides those of a payload.
const GIVEN: [&str; 2] = ["device", "topic"];

/// Adds the elements of a payload, all or none.
///
/// The field `raw` has the whole text. If the sensor reads other fields, the payload is JSON as devices send it: an object with the
/// fields, `{"ts":…,"values":{…}}`, or an array of these. `topic` is where the payload came from.
///
/// # Errors
/// The payload is not text, or no such JSON, or its elements repeat too much text, or the server refuses an element.
pub(super) fn add(
    payload: &[u8],
    raw: &'static str,
    topic: Option<&str>,
    sink: &mut ElementSink,
) -> Result<(), String> {
    let fields = &sink.source().fields;
    let wants = |name: &str| fields.iter().any(|field| field == name);
    let wants_json = fields.iter().any(|field| field != raw && !GIVEN.contains(&field.as_str()));
    let wants_raw = wants(raw) || !wants_json;
    let topic = topic.filter(|_| wants("topic"));
    let text = match std::str::from_utf8(payload) {
        Ok(text) => text,
        Err(_) => return Err("the payload is not UTF-8 text".to_owned()),
    };
    let more = || {
        let raw = wants_raw.then_some((raw, ValueRef::String(text)));
        raw.into_iter().chain(topic.map(|topic| ("topic", ValueRef::String(topic))))
    };
    if !wants_json {
        let ts = sink.hub().receipt_time();
        return sink.element(ts, more());
    }
    let series = sink.series().map_err(|failure| failure.to_string())?;
    let mut rows = Batch::new();
    let hub = std::sync::Arc::clone(sink.hub());
    let receipt = Receipt { now: system_now(), next: &|| hub.receipt_time() };
    let limits = hub.limits_of(&sink.source().device);
    decode(payload, series, receipt, &limits, &mut rows).map_err(|error| error.to_string())?;
    let raw_bytes = if wants_raw { text.len() } else { 0 };
    check_copies(rows.len(), raw_bytes + topic.map_or(0, str::len))?;
    sink.elements(rows.rows().map(|row| {
        let fields = row.fields().map(|field| (field.key, field.value));
        (row.ts(), fields.chain(more()))
    }))
}

/// Each element of a payload has the text of the whole payload, and its topic, if the sensor reads them.
fn check_copies(elements: usize, text_bytes: usize) -> Result<(), String> {
    if elements.saturating_mul(text_bytes) <= RAW_COPIES_BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "each of the {elements} elements of the payload has {text_bytes} bytes of its text and topic, together more than \
         {RAW_COPIES_BYTES_MAX} (RAW_COPIES_BYTES_MAX); let the queries read the fields without the text"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_repeat_the_text_of_their_payload_up_to_a_limit() {
        assert_eq!(check_copies(1, RAW_COPIES_BYTES_MAX), Ok(()));
        assert_eq!(check_copies(1_000_000, 0), Ok(()));
        assert_eq!(check_copies(16, RAW_COPIES_BYTES_MAX / 16), Ok(()));
        assert!(check_copies(17, RAW_COPIES_BYTES_MAX / 16).unwrap_err().contains("RAW_COPIES_BYTES_MAX"));
        assert!(check_copies(usize::MAX, 2).is_err());
    }
}
