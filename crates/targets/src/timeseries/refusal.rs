//! The reasons that servers give for a refusal.

use clients::http::message_of;

/// The reason of a refusal: the server's message, or the beginning of the body.
pub(crate) fn quoted(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let known = serde_json::from_str::<serde_json::Value>(&text).ok();
    let message = known.as_ref().and_then(|known| {
        // InfluxDB 1; OpenTSDB.
        known["error"].as_str().or_else(|| known["error"]["message"].as_str())
    });
    let message = message.map_or_else(|| message_of(text.trim()), str::to_owned);
    if message.is_empty() { format!("status {status}") } else { format!("status {status}: {message}") }
}
