//! Claiming of devices: the claim of a user of a customer, in ThingsBoard's shapes. The device API has the offer of the device.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub::claims::Claimed;
use serde_json::json;

use crate::error::ApiError;
use crate::http::limits::CLAIM_BODY_BYTES_MAX;
use crate::http::shapes::claims::read_claim;
use crate::http::shapes::devices::device_json;
use crate::http::tools::connection::Peer;
use crate::http::tools::json::Json;
use crate::http::tools::request::{PathOf, read_body};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of claims.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/customer/device/{id}/claim", claim)
        .delete("/api/customer/device/{id}/claim", reclaim)
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
