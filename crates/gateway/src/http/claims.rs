//! Claiming of devices: the offer of a device, and the claim of a user of a customer, in ThingsBoard's shapes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub::Blame;
use hub::claims::{ClaimError, Claimed};
use hub::registry::Device;
use serde_json::json;
use wire::thingsboard::claim::ClaimRequest;

use super::bodies::Sender;
use super::connection::Peer;
use super::device_login::sender_of;
use super::devices::device_json;
use super::json::Json;
use super::limits::CLAIM_BODY_BYTES_MAX;
use super::request::{PathOf, read_body};
use super::route_list::Routes;
use super::session::Session;
use super::state::HttpState;
use crate::error::ApiError;
use crate::refusals;

/// The routes of claims.
pub(super) fn routes() -> Routes {
    Routes::default()
        .post("/api/v1/{token}/claim", offer)
        .post("/api/customer/device/{id}/claim", claim)
        .delete("/api/customer/device/{id}/claim", reclaim)
}

/// `POST /api/v1/{token}/claim`: 200 once the offer of the device is on the disk.
async fn offer(
    State(state): State<Arc<HttpState>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    request: Request,
) -> Result<(), ApiError> {
    let (device, request) = sender_of(&state, &token, peer, request).await?;
    let stored = store_offer(&state, &device, request).await;
    stored.inspect_err(|error| refusals::request(&state.hub, peer, &device, error))
}

async fn store_offer(state: &HttpState, device: &Arc<Device>, request: Request) -> Result<(), ApiError> {
    let account = state.bodies.begin(Sender::Device(device.id));
    let body = read_body(request, CLAIM_BODY_BYTES_MAX, "", account).await?;
    let asked = read_claim(&body.bytes)?;
    let (hub, device) = (Arc::clone(&state.hub), Arc::clone(device));
    let offer = move || hub.offer_claim(&device, asked.secret_key(), asked.duration_ms());
    let sequence = state.attributes.run(offer).await??;
    Ok(state.hub.kv_durable(sequence).await?)
}

/// `POST /api/customer/device/{deviceName}/claim`: 200 with the device, or 400 with ThingsBoard's word for the reason.
async fn claim(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(name): PathOf<String>,
    Peer(peer): Peer,
    request: Request,
) -> Result<Response, ApiError> {
    let account = session.body_account(&state);
    let body = read_body(request, CLAIM_BODY_BYTES_MAX, "", account).await?;
    let asked = read_claim(&body.bytes)?;
    let hub = Arc::clone(&state.hub);
    let peer = peer.map(|peer| peer.ip());
    let claim = move || hub.claim_device(session.caller(), peer, &name, asked.secret_key());
    Ok(match state.changes.run(claim).await?? {
        Claimed::Success(device) => {
            Json(json!({ "device": device_json(&device), "response": "SUCCESS" })).into_response()
        }
        Claimed::Already => (StatusCode::BAD_REQUEST, Json("CLAIMED")).into_response(),
        Claimed::Failure => (StatusCode::BAD_REQUEST, Json("FAILURE")).into_response(),
    })
}

/// `DELETE /api/customer/device/{deviceName}/claim`: takes the device from its customer.
async fn reclaim(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(name): PathOf<String>,
) -> Result<(), ApiError> {
    let hub = Arc::clone(&state.hub);
    Ok(state.changes.run(move || hub.reclaim_device(session.caller(), &name)).await??)
}

fn read_claim(body: &[u8]) -> Result<ClaimRequest, ApiError> {
    ClaimRequest::parse(body).map_err(|wrong| ApiError::bad_request(wrong.to_string()))
}

impl From<ClaimError> for ApiError {
    fn from(error: ClaimError) -> Self {
        let message = error.to_string();
        match (error.blame(), error) {
            (_, ClaimError::Forbidden(error)) => error.into(),
            (_, ClaimError::NoCustomer { .. }) => Self::forbidden(message),
            (_, ClaimError::Registry(error)) => error.into(),
            (_, ClaimError::TooManyGuesses(wait)) => wait.into(),
            (_, ClaimError::Attributes(error)) => error.into(),
            (_, ClaimError::Kv(error)) => error.into(),
            (Blame::Busy, _) => Self::busy(message),
            (Blame::Caller | Blame::Operator, _) => Self { label: "claim", ..Self::argument(message) },
        }
    }
}
