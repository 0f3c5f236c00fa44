//! The device API: telemetry by HTTP, acked after durability.

use std::sync::Arc;

use axum::extract::{Request, State};
use hub::Message;

use super::login::sender_of;
use crate::error::ApiError;
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::messages::{BODY_SETTING, store_message};
use crate::http::tools::request::{PathOf, read_body};
use crate::http::tools::state::HttpState;
use crate::refusals;

/// The topic in dead letters of this door. It omits the token, which is a secret.
const TOPIC: &str = "/api/v1/{token}/telemetry";

/// `POST /api/v1/{token}/telemetry`: 200 once the payload is as durable as the device's profile requires.
pub(crate) async fn telemetry(
    State(state): State<Arc<HttpState>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    request: Request,
) -> Result<(), ApiError> {
    let device = sender_of(&state, &token, peer)?;
    let limit = state.options.body_bytes_max;
    let hub = &state.hub;
    let account = state.body_account(Sender::device(&device));
    let read = read_body(request, limit, BODY_SETTING, account).await;
    let body = read.inspect_err(|error| refusals::request(hub, peer, &device, error))?;
    let sent = Message { owner: (&device).into(), door: hub::Door::Http, topic: TOPIC, payload: &body.bytes };
    // A device may send a payload without values.
    store_message(hub, &sent, peer).await.map(|_| ())
}
