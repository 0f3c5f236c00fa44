//! Elements from payloads of devices and answers of addresses: text as it is, or JSON.

use hub::clock::system_now;
use model::{Batch, ValueRef};
use wire::telemetry::{Receipt, decode};

use super::sink::Sink;

/// The fields that the server itself gives beside those of a payload.
const GIVEN: [&str; 2] = ["device", "topic"];

/// Adds the elements of a payload.
///
/// The field `raw` has the whole text. If the sensor reads other fields, the payload is JSON as devices send it: an object with the
/// fields, `{"ts":…,"values":{…}}`, or an array of these. `topic` is where the payload came from.
///
/// # Errors
/// The payload is no text, or no such JSON, or the server refuses the element.
pub(super) fn add(
    payload: &[u8],
    raw: &'static str,
    topic: Option<&str>,
    sink: &mut Sink,
) -> Result<(), String> {
    let fields = &sink.source().fields;
    let wants = |name: &str| fields.iter().any(|field| field == name);
    let wants_json = fields.iter().any(|field| field != raw && !GIVEN.contains(&field.as_str()));
    let wants_raw = wants(raw) || !wants_json;
    let topic = topic.filter(|_| wants("topic"));
    let text = match std::str::from_utf8(payload) {
        Ok(text) => text,
        Err(_) => return Err("the payload is no UTF-8 text".to_owned()),
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
    for row in rows.rows() {
        let fields = row.fields().map(|field| (field.key, field.value));
        sink.element(row.ts(), fields.chain(more()))?;
    }
    Ok(())
}
