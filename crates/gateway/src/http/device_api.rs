//! What devices call: telemetry by HTTP, acked after durability.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use hub::DeadLetter;
use model::Batch;

use super::Door;
use super::error::{ApiError, ErrorCode};
use super::limits::BUSY_PATIENCE;
use super::request::{PathOf, discard_body, read_body};

/// What dead letters of this door name as their topic; the token itself stays a secret.
const TOPIC: &str = "/api/v1/{token}/telemetry";
/// How an operator raises the bound on bodies.
const BODY_SETTING: &str = " (or raise body_bytes_max in the section [http] of the server's configuration)";

/// `POST /api/v1/{token}/telemetry`: 200 once the payload is as durable as the device's profile asks.
pub(crate) async fn telemetry(
    State(door): State<Arc<Door>>,
    PathOf(token): PathOf<String>,
    request: Request,
) -> Result<(), ApiError> {
    let Some(device) = door.hub.registry().device_by_token(&token) else {
        discard_body(request).await;
        let message = "no device has this access token; check it, or add the device with `tacho device add`";
        return Err(ApiError::unauthenticated("token", message));
    };
    let limit = door.options.body_bytes_max;
    let body = read_body(request, limit, BODY_SETTING, &door.bodies).await?;
    let received = Instant::now();
    let hub = &door.hub;
    let counters = hub.metrics().door(hub::Door::Http);
    counters.messages.inc();
    counters.bytes.inc_by(body.bytes.len() as u64);

    let series = hub.series_of(&device)?;
    let mut batch = Batch::new();
    let decoded =
        wire::telemetry::decode(&body.bytes, series, hub.receipt_time(), &hub.limits_of(&device), &mut batch);
    let refusal = decoded.err().map(|reason| (reason.label(), reason.to_string()));
    if let Some((_, reason)) = &refusal {
        let letter = DeadLetter { door: hub::Door::Http.name(), topic: TOPIC, reason, payload: &body.bytes };
        hub.add_dead_letter(&device, letter, &mut batch)?;
    }
    if !batch.is_empty() {
        hub.ingest_and_wait(&batch, device.profile.durability, BUSY_PATIENCE).await?;
    }
    match refusal {
        None => {
            counters.ack_latency.observe(received.elapsed().as_secs_f64());
            Ok(())
        }
        // Only now: what is refused is kept before its sender is told.
        Some((label, reason)) => {
            let message = format!("{reason}; the payload is kept in the table {}", hub::DEAD_LETTER_TABLE);
            Err(ApiError::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidArguments, label, message))
        }
    }
}
