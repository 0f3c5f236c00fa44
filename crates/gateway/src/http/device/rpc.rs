//! RPC over the device API: a device polls for calls, answers them, and calls procedures of the server.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub::device_messages::{DeviceMessage, DeviceOutbox, NotifyWake};
use hub::registry::Device;
use hub::rpc::{Delivery, SessionLimits, answer_to_device};
use wire::thingsboard::rpc::{DeviceCall, call_with_id};

use super::login::{device_of, poll_timeout, polled, sender_of};
use crate::error::ApiError;
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::json::json_response;
use crate::http::tools::request::{HeldBody, Params, PathOf, read_body};
use crate::http::tools::state::HttpState;

/// `GET /api/v1/{token}/rpc?timeout=<ms>`: waits for a call. 408 without a body if none came, as in ThingsBoard.
pub(crate) async fn poll(
    State(state): State<Arc<HttpState>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    params: Params,
) -> Result<Response, ApiError> {
    let device = device_of(&state, &token, peer)?;
    let timeout = poll_timeout(&params)?;
    let _poll = state.polls.begin(device.id)?;
    let wake = NotifyWake::default();
    let outbox = state.hub.open_poll(&device, Arc::new(wake.clone()));
    let Some(message) = polled(&state, timeout, next_call(&outbox, &wake)).await else {
        return Ok(StatusCode::REQUEST_TIMEOUT.into_response());
    };
    let DeviceMessage::RpcRequest(call) = &*message else {
        return Err(ApiError::internal("a poll got a message that is not a call"));
    };
    if call.persistent {
        state.hub.call_delivery(&device, call.id, Delivery::Delivered);
    }
    Ok(json_response(Body::from(call_with_id(call.id, &call.method, &call.params))))
}

/// Waits for a message of an outbox that gets calls only.
async fn next_call(outbox: &DeviceOutbox, wake: &NotifyWake) -> Arc<DeviceMessage> {
    loop {
        match outbox.take(1).pop() {
            Some(message) => return message,
            None => wake.woken().await,
        }
    }
}

/// `POST /api/v1/{token}/rpc/{id}`: the answer of a device to a call. 200 also if no call waits for it any more.
pub(crate) async fn answer(
    State(state): State<Arc<HttpState>>,
    PathOf((token, id)): PathOf<(String, String)>,
    Peer(peer): Peer,
    request: Request,
) -> Result<(), ApiError> {
    let device = sender_of(&state, &token, peer)?;
    let wrong = |_| ApiError::argument(format!("{id:?} is not the number of a call; it is in the call"));
    let id = id.parse().map_err(wrong)?;
    let body = device_body(&state, &device, request).await?;
    state.hub.answer_call_and_wait(&device, id, body.bytes.clone()).await?;
    Ok(())
}

/// `POST /api/v1/{token}/rpc`: a device calls a procedure of the server.
pub(crate) async fn call(
    State(state): State<Arc<HttpState>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    request: Request,
) -> Result<Response, ApiError> {
    let device = sender_of(&state, &token, peer)?;
    let body = device_body(&state, &device, request).await?;
    let call = DeviceCall::parse(&body.bytes).map_err(|wrong| ApiError::bad_request(wrong.to_string()))?;
    state.hub.metrics().rpc.from_devices.inc();
    let limits =
        SessionLimits { payload_bytes_max: state.options.body_bytes_max, inflight_max: 1, gateway: false };
    Ok(json_response(Body::from(answer_to_device(&call.method, limits))))
}

async fn device_body(state: &HttpState, device: &Device, request: Request) -> Result<HeldBody, ApiError> {
    let account = state.body_account(Sender::device(device));
    read_body(request, state.options.body_bytes_max, "", account).await
}
