//! The offer of a device to be claimed.

use std::sync::Arc;

use axum::extract::{Request, State};
use hub::registry::Device;

use super::login::sender_of;
use crate::error::ApiError;
use crate::http::limits::CLAIM_BODY_BYTES_MAX;
use crate::http::shapes::claims::read_claim;
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::request::{PathOf, read_body};
use crate::http::tools::state::HttpState;
use crate::refusals;

/// `POST /api/v1/{token}/claim`: 200 once the offer of the device is on the disk.
pub(crate) async fn offer(
    State(state): State<Arc<HttpState>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    request: Request,
) -> Result<(), ApiError> {
    let device = sender_of(&state, &token, peer)?;
    let stored = store_offer(&state, &device, request).await;
    stored.inspect_err(|error| refusals::request(&state.hub, peer, &device, error))
}

async fn store_offer(state: &HttpState, device: &Arc<Device>, request: Request) -> Result<(), ApiError> {
    let account = state.body_account(Sender::device(device));
    let body = read_body(request, CLAIM_BODY_BYTES_MAX, "", account).await?;
    let asked = read_claim(&body.bytes)?;
    let (hub, device) = (Arc::clone(&state.hub), Arc::clone(device));
    let offer = move || hub.offer_claim(&device, asked.secret_key(), asked.duration_ms());
    let sequence = state.attributes.run(offer).await??;
    Ok(state.hub.kv_durable(sequence).await?)
}
