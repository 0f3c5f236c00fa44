//! RPC over REST in ThingsBoard's shapes: calls of procedures of devices.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hub::caller::Action;
use hub::clock::system_now;
use hub::rpc::{RpcCall, RpcError, Storing};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::{ApiError, ErrorCode};
use crate::http::limits::RPC_BODY_BYTES_MAX;
use crate::http::tools::json::{Json, json_response};
use crate::http::tools::request::{PathOf, path_id, read_body};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// A version of ThingsBoard's interface. They differ in the answers when a device does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// `/api/plugins/rpc/`: 409 if the device is not connected, 408 if it does not answer.
    One,
    /// `/api/rpc/`: 504 for both.
    Two,
}

type Answer = Result<Response, ApiError>;

/// `POST /api/plugins/rpc/oneway/{deviceId}`
pub(crate) async fn one_way_v1(
    state: State<Arc<HttpState>>,
    session: Session,
    id: PathOf<String>,
    request: Request,
) -> Answer {
    call(state, session, id, request, (Version::One, true)).await
}

/// `POST /api/plugins/rpc/twoway/{deviceId}`
pub(crate) async fn two_way_v1(
    state: State<Arc<HttpState>>,
    session: Session,
    id: PathOf<String>,
    request: Request,
) -> Answer {
    call(state, session, id, request, (Version::One, false)).await
}

/// `POST /api/rpc/oneway/{deviceId}`
pub(crate) async fn one_way(
    state: State<Arc<HttpState>>,
    session: Session,
    id: PathOf<String>,
    request: Request,
) -> Answer {
    call(state, session, id, request, (Version::Two, true)).await
}

/// `POST /api/rpc/twoway/{deviceId}`
pub(crate) async fn two_way(
    state: State<Arc<HttpState>>,
    session: Session,
    id: PathOf<String>,
    request: Request,
) -> Answer {
    call(state, session, id, request, (Version::Two, false)).await
}

async fn call(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
    request: Request,
    (version, one_way): (Version, bool),
) -> Answer {
    session.check(Action::Command)?;
    let device = session.device(&state.hub, path_id(&id)?)?;
    let body = read_body(request, RPC_BODY_BYTES_MAX, "", session.body_account(&state)).await?;
    let asked = CallBody::parse(&body.bytes)?;
    let (call, storing) = (asked.call(one_way), asked.storing()?);
    drop(body);
    if let Some(storing) = storing {
        let stored = state.hub.store_call(session.caller(), device.id, call, storing).await;
        let id = stored.map_err(|error| refusal(error, version))?;
        return Ok(Json(json!({ "rpcId": id })).into_response());
    }
    let answer = state.hub.call_device(session.caller(), device.id, call).await;
    match answer.map_err(|error| refusal(error, version))? {
        Some(answer) if !answer.is_empty() => device_answer(answer),
        Some(_) | None => Ok(StatusCode::OK.into_response()),
    }
}

/// The answer of a device as the answer of the server; 406 if it is not JSON, as in ThingsBoard.
fn device_answer(answer: Bytes) -> Answer {
    if serde_json::from_slice::<&RawValue>(&answer).is_err() {
        let message = "the device answered with a payload that is not JSON";
        let status = StatusCode::NOT_ACCEPTABLE;
        return Err(ApiError::new(status, ErrorCode::General, "rpc_answer", message));
    }
    Ok(json_response(Body::from(answer)))
}

/// The body of a call.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallBody<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    timeout: Option<i64>,
    expiration_time: Option<i64>,
    #[serde(default)]
    persistent: bool,
    retries: Option<u32>,
    #[serde(borrow)]
    additional_info: Option<&'a RawValue>,
    /// ThingsBoard's id of the call. Nobody sees that of a call that is not stored.
    #[serde(rename = "requestUUID")]
    request_id: Option<String>,
}

impl<'a> CallBody<'a> {
    fn parse(body: &'a [u8]) -> Result<Self, ApiError> {
        let wrong = |error| ApiError::bad_request(format!("the body is not the JSON of a call: {error}"));
        serde_json::from_slice(body).map_err(wrong)
    }

    fn call(&self, one_way: bool) -> RpcCall {
        RpcCall {
            method: self.method.clone(),
            params: self.params.map_or("null", RawValue::get).to_owned(),
            one_way,
            expires_at: RpcCall::end(system_now(), self.timeout, self.expiration_time),
        }
    }

    /// What to store with a persistent call.
    fn storing(&self) -> Result<Option<Storing>, ApiError> {
        if self.persistent && self.request_id.is_some() {
            let message =
                "requestUUID has a value, and the server itself gives a persistent call its id; leave it out";
            return Err(ApiError::argument(message));
        }
        let additional_info = self.additional_info.map(|info| info.get().to_owned());
        Ok(self.persistent.then_some(Storing { retries: self.retries, additional_info }))
    }
}

pub(crate) fn refusal(error: RpcError, version: Version) -> ApiError {
    let message = error.to_string();
    let status = match (&error, version) {
        (RpcError::Timeout { .. }, Version::One) => StatusCode::REQUEST_TIMEOUT,
        (RpcError::NoConnection { .. }, Version::One) => StatusCode::CONFLICT,
        (RpcError::Timeout { .. } | RpcError::NoConnection { .. }, Version::Two) => {
            StatusCode::GATEWAY_TIMEOUT
        }
        (RpcError::NoMethod | RpcError::Unfit(_) | RpcError::TooLong { .. } | RpcError::TooFar { .. }, _) => {
            return ApiError::argument(message);
        }
        (RpcError::Busy { .. } | RpcError::OutboxFull { .. }, _) => return ApiError::busy(message),
        (RpcError::Unknown(_), _) => return ApiError::not_found(message),
        (RpcError::Forbidden(_) | RpcError::Registry(_) | RpcError::Kv(_), _) => return of_the_hub(error),
    };
    ApiError::new(status, ErrorCode::General, "rpc_timeout", message)
}

fn of_the_hub(error: RpcError) -> ApiError {
    match error {
        RpcError::Registry(error) => error.into(),
        RpcError::Kv(error) => error.into(),
        other => ApiError::forbidden(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_as_thingsboard_reads_it() {
        let body = CallBody::parse(br#"{"method":"m","params":{"a": 1},"timeout":7000}"#).unwrap();
        let call = body.call(true);
        assert_eq!((call.method.as_str(), call.params.as_str(), call.one_way), ("m", r#"{"a": 1}"#, true));
        let wait_ms = call.expires_at.millis() - system_now().millis();
        assert!((6_000..=7_000).contains(&wait_ms), "{wait_ms}");
        let body = CallBody::parse(br#"{"method":"m","expirationTime":5}"#).unwrap();
        assert_eq!((body.call(false).params.as_str(), body.call(false).expires_at.millis()), ("null", 5));
        let named = CallBody::parse(br#"{"method":"m","requestUUID":"7","persistent":true}"#).unwrap();
        assert!(named.storing().unwrap_err().message.contains("leave it out"));
        assert!(CallBody::parse(br#"{"params":1}"#).err().unwrap().message.contains("method"));
    }

    #[test]
    fn the_versions_differ_in_the_status_of_a_silent_device() {
        let device = uuid::Uuid::nil();
        let status = |error, version| refusal(error, version).status.as_u16();
        assert_eq!(status(RpcError::Timeout { device }, Version::One), 408);
        assert_eq!(status(RpcError::NoConnection { device }, Version::One), 409);
        assert_eq!(status(RpcError::Timeout { device }, Version::Two), 504);
        assert_eq!(status(RpcError::NoConnection { device }, Version::Two), 504);
        assert_eq!(status(RpcError::OutboxFull { device }, Version::Two), 429);
        assert_eq!(status(RpcError::NoMethod, Version::One), 400);
        assert_eq!(status(RpcError::Unfit(String::new()), Version::Two), 400);
    }
}
