//! What devices call: telemetry by HTTP, acked after durability.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use hub::clock::system_now;
use hub::{Blame, DeadLetter};
use model::Batch;
use wire::telemetry::Receipt;

use super::Door;
use super::bodies::Sender;
use super::error::{ApiError, ErrorCode};
use super::limits::BUSY_PATIENCE;
use super::request::{PathOf, discard_body, read_body};
use super::server::Peer;
use crate::refusals;

/// What dead letters of this door name as their topic; the token itself stays a secret.
const TOPIC: &str = "/api/v1/{token}/telemetry";
/// How an operator raises the bound on bodies.
const BODY_SETTING: &str = " (or raise body_bytes_max in the section [http] of the server's configuration)";

/// `POST /api/v1/{token}/telemetry`: 200 once the payload is as durable as the device's profile asks.
pub(crate) async fn telemetry(
    State(door): State<Arc<Door>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    request: Request,
) -> Result<(), ApiError> {
    let Some(device) = door.hub.registry().device_by_token(&token) else {
        discard_body(request).await;
        refusals::token(&door.hub, hub::Door::Http, peer, "the access token belongs to no device");
        let message = "no device has this access token; check it, or add the device with `tacho device add`";
        return Err(ApiError::unauthenticated("token", message));
    };
    let limit = door.options.body_bytes_max;
    let hub = &door.hub;
    let account = door.bodies.begin(Sender::Device(device.id));
    let read = read_body(request, limit, BODY_SETTING, account).await;
    let body = read.inspect_err(|error| {
        // What is only busy will be sent again.
        if error.retry_after_s.is_none() {
            refusals::note(hub, hub::Door::Http, peer, &device, &error.message);
        }
    })?;
    let received = Instant::now();
    let counters = hub.metrics().door(hub::Door::Http);
    counters.messages.inc();
    counters.bytes.inc_by(body.bytes.len() as u64);

    let series = hub.series_of(&device)?;
    let mut batch = Batch::new();
    let receipt = Receipt { now: system_now(), next: &|| hub.receipt_time() };
    let decoded = wire::telemetry::decode(&body.bytes, series, receipt, &hub.limits_of(&device), &mut batch);
    let mut refusal = decoded.err().map(|reason| (reason.label(), reason.to_string()));
    let durability = device.profile.durability;
    if refusal.is_none() && !batch.is_empty() {
        match hub.ingest_and_wait(&batch, durability, BUSY_PATIENCE).await {
            // Such as one column too many for the table.
            Err(error) if error.blame() == Blame::Caller => {
                refusal = Some(("store_limit", error.to_string()));
                batch.clear();
            }
            taken => drop(taken?),
        }
    }
    let Some((label, reason)) = refusal else {
        counters.ack_latency.observe(received.elapsed().as_secs_f64());
        return Ok(());
    };
    refusals::note(hub, hub::Door::Http, peer, &device, &reason);
    let letter =
        DeadLetter { door: hub::Door::Http.name(), topic: TOPIC, reason: &reason, payload: &body.bytes };
    hub.add_dead_letter(&device, letter, &mut batch)?;
    // The dead letter is durable before the device gets the refusal.
    hub.ingest_and_wait(&batch, durability, BUSY_PATIENCE).await?;
    let message = format!("{reason}; the payload is kept in the table {}", hub::DEAD_LETTER_TABLE);
    Err(ApiError::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidArguments, label, message))
}
