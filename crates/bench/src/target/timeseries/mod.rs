//! The HiTSDB test: clients write points of many timelines, a fixed number in a request. What the drivers `opentsdb`,
//! `influx` and `prometheus` have in common; each of those writes its protocol.
//!
//! `timelines.rs` computes the data, `written.rs` keeps what became of each request, `protocol.rs` is the load,
//! `server.rs` starts and wipes servers, `reader.rs` and the files of products read back, `verify.rs` compares.

mod driver;
mod findings;
mod options;
mod product;
pub(crate) mod protocol;
mod questdb;
pub(crate) mod reader;
mod server;
pub(crate) mod timelines;
mod verify;
mod victoria;
mod written;

use super::driver::Driver;
use crate::http::message_of;
use crate::scenario::Scenario;
pub(crate) use options::Door;

/// The driver of a scenario for a protocol.
pub(crate) fn driver(scenario: &Scenario, door: Door) -> Result<Box<dyn Driver>, String> {
    Ok(Box::new(driver::TimeseriesDriver::new(scenario, door)?))
}

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
