//! The wrappers `remote-api`, `remote-rest`, `remote` and `remote-push`: a virtual sensor of another server is asked for new rows, or
//! pushes them.
//!
//! A row is stored with the time that it has there, so it comes once: a request begins at the newest stored row.

mod multidata;
mod push;
mod rest_v3;
mod rows;

use std::sync::Arc;
use std::time::Duration;

use clients::outgoing::AllowedTargets;
use tokio::time::{MissedTickBehavior, interval};
use virtual_sensors::{Remote, RemoteInterface};

use super::failure::Failure;
use super::http::Client;
use super::sink::ElementSink;
use crate::limits::{HTTP_ELEMENT_BYTES_MAX, HTTP_ROWS_BYTES_MAX};
use rows::{New, Refused, Rows};

/// Asks, or takes what is pushed, until there is no answer.
pub(super) async fn read(
    targets: &Arc<AllowedTargets>,
    remote: &Remote,
    sink: &mut ElementSink,
) -> Result<(), Failure> {
    if let Some(contact) = &remote.push_to {
        let client = Client::new(targets, remote.cafile.as_deref(), HTTP_ELEMENT_BYTES_MAX).await?;
        return push::read(&client, remote, contact, sink).await;
    }
    let client = Client::new(targets, remote.cafile.as_deref(), HTTP_ROWS_BYTES_MAX).await?;
    let start_ms = remote.start_ms.unwrap_or_else(|| sink.begun().millis());
    let mut new = match sink.newest_time().await? {
        // The microsecond states how many rows of the millisecond are stored.
        Some(ts) => New::after(ts.millis(), ts.micros().rem_euclid(1_000)),
        None => New::from(start_ms),
    };
    let mut token = None;
    let mut turns = interval(Duration::from_millis(remote.sampling_ms));
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        let rows = match remote.interface {
            RemoteInterface::RestV3 => rest_v3::rows(remote, new.begin_ms(), &client, &mut token).await?,
            RemoteInterface::Multidata => multidata::rows(remote, new.begin_ms(), &client).await?,
        };
        sink.connected();
        add(rows, &mut new, sink).await?;
    }
}

async fn add(rows: Rows, new: &mut New, sink: &mut ElementSink) -> Result<(), Failure> {
    let Rows { names, rows, refused } = rows;
    for Refused { reason, text } in new.refused(refused) {
        sink.refuse(&format!("a row: {reason}"), text.as_bytes());
        if sink.is_full() {
            sink.store(b"").await?;
        }
    }
    new.begin();
    for (ms, values) in rows {
        let Some(ts) = new.time(ms) else { continue };
        let values = names.iter().zip(&values);
        let values = values.filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?.as_ref())));
        if let Err(reason) = ts.and_then(|ts| sink.element(ts, values)) {
            sink.refuse(&format!("a row of the time {ms}: {reason}"), b"");
        }
        if sink.is_full() {
            sink.store(b"").await?;
        }
    }
    sink.store(b"").await
}
