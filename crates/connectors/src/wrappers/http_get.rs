//! The wrapper `http-get`: the answers of an address.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::failure::Failure;
use super::http::{Client, Request};
use super::payload;
use super::sink::ElementSink;

/// The field with the whole answer, as in GSN.
const RAW_FIELD: &str = "data";
/// The address has nothing new, as in GSN.
const ACCEPTED: u16 = 202;
const NO_CONTENT: u16 = 204;

/// Asks until there is no answer.
pub(super) async fn read(
    client: &Client,
    url: &str,
    rate_ms: u64,
    sink: &mut ElementSink,
) -> Result<(), Failure> {
    let mut turns = interval(Duration::from_millis(rate_ms));
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        let request = Request::Get { url: url.to_owned(), authorization: None };
        let answer = client.send(request).await?;
        let status = answer.status;
        let body = answer.success(url)?;
        sink.connected();
        if matches!(status, ACCEPTED | NO_CONTENT) {
            continue;
        }
        if let Err(reason) = payload::add(&body, RAW_FIELD, None, sink) {
            sink.refuse(&format!("the answer: {reason}"), &body);
        }
        sink.store(&body).await?;
    }
}
