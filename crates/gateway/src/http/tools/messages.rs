//! Messages of telemetry over HTTP: stores one as rows or as a dead letter, and counts it.

use std::net::SocketAddr;
use std::time::Instant;

use axum::http::StatusCode;
use hub::clock::system_now;
use hub::{Blame, EntityId, EntityKind, Hub, IngestError, Message, MessageRefusal};
use model::Batch;
use wire::telemetry::Receipt;

use crate::error::{ApiError, ErrorCode};
use crate::http::limits::BUSY_TIMEOUT;
use crate::refusals;

/// How an operator raises the bound on bodies.
pub(crate) const BODY_SETTING: &str =
    " (or raise body_bytes_max in the section [http] of the server's configuration)";
/// The metrics label of a message that the store refuses.
const STORE_LIMIT: &str = "store_limit";

/// What an accepted message had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Values.
    Rows,
    /// No value.
    Nothing,
}

/// Stores a message as rows or as a dead letter. When this returns, it is as durable as the device's profile requires.
///
/// # Errors
/// The message is refused, and kept as a dead letter if the error says so.
pub(crate) async fn store_message(
    hub: &Hub,
    sent: &Message<'_>,
    peer: Option<SocketAddr>,
) -> Result<Stored, ApiError> {
    let received = Instant::now();
    let counters = hub.metrics().door(sent.door);
    counters.messages.inc();
    counters.bytes.inc_by(sent.payload.len() as u64);
    let (label, reason) = match store(hub, sent, peer).await? {
        Ok(stored) => {
            counters.ack_latency.observe(received.elapsed().as_secs_f64());
            return Ok(stored);
        }
        Err(refused) => refused,
    };
    note(hub, sent, peer, &reason);
    let message = format!("{reason}; the payload is kept in the table {}", hub::DEAD_LETTER_TABLE);
    Err(ApiError::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidArguments, label, message))
}

/// Notes a refusal for the page of the device. Assets have no such page; their dead letters tell.
fn note(hub: &Hub, sent: &Message<'_>, peer: Option<SocketAddr>, reason: &str) {
    let EntityId { kind, id } = sent.owner.entity;
    if let Some(device) = hub.registry().device_by_id(id).filter(|_| kind == EntityKind::Device) {
        refusals::note(hub, sent.door, peer, &device, reason);
    }
}

/// The refusal of a whole message: the label for metrics, and the reason for the sender.
type Refused = (&'static str, String);

async fn store(
    hub: &Hub,
    sent: &Message<'_>,
    peer: Option<SocketAddr>,
) -> Result<Result<Stored, Refused>, ApiError> {
    let durability = sent.owner.durability;
    let batch = match decode(hub, sent)? {
        Ok(batch) => batch,
        Err((label, reason)) => {
            let kept = hub.ingest_dead_letter_and_wait(sent, &reason, durability, BUSY_TIMEOUT).await;
            kept.map_err(|error| not_kept(&error))?;
            return Ok(Err((label, reason)));
        }
    };
    if batch.is_empty() {
        return Ok(Ok(Stored::Nothing));
    }
    let load = hub.tenant_load(sent.owner.tenant);
    load.check_points(Instant::now())?;
    load.add_points(batch.points(), Instant::now());
    let kept = hub.ingest_message_and_wait(sent, &batch, durability, BUSY_TIMEOUT).await;
    match kept.map_err(|error| not_kept(&error))?.refusal {
        None => Ok(Ok(Stored::Rows)),
        // For example, the table has no room for any of its keys.
        Some(MessageRefusal { reason, whole: true }) => Ok(Err((STORE_LIMIT, reason))),
        // The store has its other keys, so the message counts as accepted.
        Some(MessageRefusal { reason, whole: false }) => {
            hub.metrics().refused(sent.door, STORE_LIMIT);
            note(hub, sent, peer, &reason);
            Ok(Ok(Stored::Rows))
        }
    }
}

fn decode(hub: &Hub, sent: &Message<'_>) -> Result<Result<Batch, Refused>, ApiError> {
    let series = match hub.series_of(&sent.owner) {
        Ok(series) => series,
        // For example, the store has the maximum number of tables.
        Err(error) if error.blame() == Blame::Caller => return Ok(Err((STORE_LIMIT, error.to_string()))),
        Err(error) => return Err(error.into()),
    };
    let mut batch = Batch::new();
    let receipt = Receipt { now: system_now(), next: &|| hub.receipt_time() };
    let limits = hub.limits_of(&sent.owner);
    let decoded = wire::telemetry::decode(sent.payload, series, receipt, &limits, &mut batch);
    Ok(decoded.map(|()| batch).map_err(|reason| (reason.label(), reason.to_string())))
}

/// The error for a message that the store can keep in no form. The sender should try again later.
fn not_kept(error: &IngestError) -> ApiError {
    match error.blame() {
        Blame::Caller => {
            let table = hub::DEAD_LETTER_TABLE;
            let message = format!(
                "the message is not kept, in the table {table} neither: {error}; send it again later"
            );
            ApiError::unavailable(STORE_LIMIT, message)
        }
        Blame::Busy | Blame::Operator => error.clone().into(),
    }
}
