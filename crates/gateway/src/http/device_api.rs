//! The device API: telemetry by HTTP, acked after durability.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use hub::clock::system_now;
use hub::{Blame, Hub, IngestError, Message, MessageRefusal};
use model::Batch;
use wire::telemetry::Receipt;

use super::bodies::Sender;
use super::connection::Peer;
use super::device_login::sender_of;
use super::limits::BUSY_TIMEOUT;
use super::request::{PathOf, read_body};
use super::state::HttpState;
use crate::error::{ApiError, ErrorCode};
use crate::refusals;

/// The topic in dead letters of this door. It omits the token, which is a secret.
const TOPIC: &str = "/api/v1/{token}/telemetry";
/// The metrics label of a message that the store refuses.
const STORE_LIMIT: &str = "store_limit";
/// How an operator raises the bound on bodies.
const BODY_SETTING: &str = " (or raise body_bytes_max in the section [http] of the server's configuration)";

/// `POST /api/v1/{token}/telemetry`: 200 once the payload is as durable as the device's profile requires.
pub(crate) async fn telemetry(
    State(state): State<Arc<HttpState>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    request: Request,
) -> Result<(), ApiError> {
    let (device, request) = sender_of(&state, &token, peer, request).await?;
    let limit = state.options.body_bytes_max;
    let hub = &state.hub;
    let account = state.bodies.begin(Sender::Device(device.id));
    let read = read_body(request, limit, BODY_SETTING, account).await;
    let body = read.inspect_err(|error| {
        // After a busy answer the device sends the message again, so it is not a refusal.
        if error.retry_after_s.is_none() {
            refusals::note(hub, hub::Door::Http, peer, &device, &error.message);
        }
    })?;
    let received = Instant::now();
    let counters = hub.metrics().door(hub::Door::Http);
    counters.messages.inc();
    counters.bytes.inc_by(body.bytes.len() as u64);

    let sent = Message { device: &device, door: hub::Door::Http, topic: TOPIC, payload: &body.bytes };
    let Err((label, reason)) = store(hub, &sent, peer).await? else {
        counters.ack_latency.observe(received.elapsed().as_secs_f64());
        return Ok(());
    };
    refusals::note(hub, hub::Door::Http, peer, &device, &reason);
    let message = format!("{reason}; the payload is kept in the table {}", hub::DEAD_LETTER_TABLE);
    Err(ApiError::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidArguments, label, message))
}

/// The refusal of a whole message: the label for metrics, and the reason for the sender.
type Refused = (&'static str, String);

/// Stores a message as rows or as a dead letter. When this returns, it is as durable as the device's profile requires.
async fn store(
    hub: &Hub,
    sent: &Message<'_>,
    peer: Option<SocketAddr>,
) -> Result<Result<(), Refused>, ApiError> {
    let durability = sent.device.profile.durability;
    let batch = match decode(hub, sent)? {
        Ok(batch) => batch,
        Err((label, reason)) => {
            let kept = hub.ingest_dead_letter_and_wait(sent, &reason, durability, BUSY_TIMEOUT).await;
            kept.map_err(|error| not_kept(&error))?;
            return Ok(Err((label, reason)));
        }
    };
    if batch.is_empty() {
        return Ok(Ok(()));
    }
    let kept = hub.ingest_message_and_wait(sent, &batch, durability, BUSY_TIMEOUT).await;
    match kept.map_err(|error| not_kept(&error))?.refusal {
        None => Ok(Ok(())),
        // For example, the table has no room for any of its keys.
        Some(MessageRefusal { reason, whole: true }) => Ok(Err((STORE_LIMIT, reason))),
        // The store has its other keys, so the message counts as accepted.
        Some(MessageRefusal { reason, whole: false }) => {
            refusals::message(hub, hub::Door::Http, peer, sent.device, STORE_LIMIT, &reason);
            Ok(Ok(()))
        }
    }
}

fn decode(hub: &Hub, sent: &Message<'_>) -> Result<Result<Batch, Refused>, ApiError> {
    let series = match hub.series_of(sent.device) {
        Ok(series) => series,
        // For example, the store has the maximum number of tables.
        Err(error) if error.blame() == Blame::Caller => return Ok(Err((STORE_LIMIT, error.to_string()))),
        Err(error) => return Err(error.into()),
    };
    let mut batch = Batch::new();
    let receipt = Receipt { now: system_now(), next: &|| hub.receipt_time() };
    let limits = hub.limits_of(sent.device);
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
