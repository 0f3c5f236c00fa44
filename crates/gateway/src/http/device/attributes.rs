//! Attributes over the device API: a device sets its client attributes, reads, and waits for changes of shared attributes.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub::device_messages::{DeviceMessage, DeviceOutbox, Interests, NotifyWake};
use hub::registry::Device;
use wire::thingsboard::attributes::{push_of_changed, push_of_deleted, read_publish, response};

use super::login::{device_of, poll_timeout, polled, sender_of};
use crate::attribute_pairs::pairs;
use crate::error::ApiError;
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::json::json_response;
use crate::http::tools::request::{Params, PathOf, read_body, split_keys};
use crate::http::tools::state::HttpState;
use crate::refusals;

/// `POST /api/v1/{token}/attributes`: 200 once all client attributes of the body are on the disk.
pub(crate) async fn set(
    State(state): State<Arc<HttpState>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    request: Request,
) -> Result<(), ApiError> {
    let device = sender_of(&state, &token, peer)?;
    let stored = store(&state, &device, request).await;
    stored.inspect_err(|error| refusals::request(&state.hub, peer, &device, error))
}

async fn store(state: &HttpState, device: &Arc<Device>, request: Request) -> Result<(), ApiError> {
    let account = state.body_account(Sender::device(device));
    let body = read_body(request, state.options.body_bytes_max, "", account).await?;
    let depth_max = state.hub.limits().json_depth_max;
    let read = read_publish(&body.bytes, depth_max);
    let entries = read.map_err(|wrong| ApiError::bad_request(wrong.to_string()))?;
    let (hub, device) = (Arc::clone(&state.hub), Arc::clone(device));
    let set = state.attributes.run(move || hub.set_client_attributes(&device, &entries));
    let sequence = set.await??;
    Ok(state.hub.kv_durable(sequence).await?)
}

/// `GET /api/v1/{token}/attributes?clientKeys=a,b&sharedKeys=c`: all attributes of both scopes without any list.
pub(crate) async fn read(
    State(state): State<Arc<HttpState>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    params: Params,
) -> Result<Response, ApiError> {
    let device = device_of(&state, &token, peer)?;
    let list = |name| params.text(name).map(|keys| split_keys(keys).map(str::to_owned).collect::<Vec<_>>());
    let (client, shared) = (list("clientKeys"), list("sharedKeys"));
    let hub = Arc::clone(&state.hub);
    let read = move || hub.attributes_for_device(&device, client.as_deref(), shared.as_deref());
    let found = state.attributes.run(read).await??;
    Ok(json_response(Body::from(response(&pairs(&found.client), &pairs(&found.shared)))))
}

/// `GET /api/v1/{token}/attributes/updates?timeout=<ms>`: waits for the next change of shared attributes. 408 without a body if
/// none came, as in ThingsBoard.
pub(crate) async fn updates(
    State(state): State<Arc<HttpState>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    params: Params,
) -> Result<Response, ApiError> {
    let device = device_of(&state, &token, peer)?;
    let timeout = poll_timeout(&params)?;
    let _poll = state.polls.begin(device.id)?;
    let wake = NotifyWake::default();
    let interests = Interests { shared_attributes: true, rpc: false };
    let outbox = state.hub.open_outbox(&device, interests, Arc::new(wake.clone()));
    let Some(change) = polled(&state, timeout, next_change(&outbox, &wake)).await else {
        return Ok(StatusCode::REQUEST_TIMEOUT.into_response());
    };
    Ok(json_response(Body::from(change)))
}

/// Waits for a change of shared attributes; returns its payload.
async fn next_change(outbox: &DeviceOutbox, wake: &NotifyWake) -> Vec<u8> {
    loop {
        let taken = outbox.take(1);
        match taken.first().map(|message| &**message) {
            Some(DeviceMessage::AttributesChanged { entries }) => return push_of_changed(&pairs(entries)),
            Some(DeviceMessage::AttributesDeleted { keys }) => {
                return push_of_deleted(&keys.iter().map(|key| &**key).collect::<Vec<_>>());
            }
            Some(DeviceMessage::RpcRequest(_)) => {}
            None => wake.woken().await,
        }
    }
}
