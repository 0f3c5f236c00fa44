//! Stored calls of procedures of devices (persistent RPC) in ThingsBoard's shapes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::rpc::StoredCall;
use hub::stored_calls::StoredCallsRequest;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use super::calls::{Version, refusal};
use crate::error::ApiError;
use crate::http::limits::RPC_PAGE_MAX;
use crate::http::shapes::entities::PageJson;
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{Params, PathOf, path_id};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// `GET /api/rpc/persistent/{rpcId}`
pub(crate) async fn show(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<Response, ApiError> {
    let (hub, id) = (Arc::clone(&state.hub), call_id(&id)?);
    let found = state.reads.run(move || hub.stored_call(session.caller(), id)).await?;
    let call = found.map_err(|error| refusal(error, Version::Two))?;
    Ok(Json(CallJson::of(&call)).into_response())
}

/// `GET /api/rpc/persistent/device/{deviceId}?pageSize=&page=&rpcStatus=&sortProperty=&sortOrder=`
pub(crate) async fn list(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let request = parse(&params)?;
    let device = session.device(&state.hub, path_id(&id)?)?;
    let hub = Arc::clone(&state.hub);
    let list = move || {
        let found = hub.stored_calls_of(session.caller(), device.id, request);
        let page = found.map_err(|error| refusal(error, Version::Two))?;
        let answer = PageJson {
            data: page.data.iter().map(CallJson::of).collect::<Vec<_>>(),
            total_pages: page.total_pages,
            total_elements: page.total_elements,
            has_next: page.has_next,
        };
        Ok(Json(answer).into_response())
    };
    state.reads.run(list).await?
}

/// `DELETE /api/rpc/persistent/{rpcId}`
pub(crate) async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<(), ApiError> {
    let deleted = state.hub.delete_stored_call(session.caller(), call_id(&id)?).await;
    deleted.map_err(|error| refusal(error, Version::Two))
}

fn call_id(text: &str) -> Result<Uuid, ApiError> {
    let wrong = |_| ApiError::argument(format!("{text:?} is not the id of a call; ids are UUIDs"));
    Uuid::parse_str(text).map_err(wrong)
}

fn parse(params: &Params) -> Result<StoredCallsRequest, ApiError> {
    let status = params.text("rpcStatus").map(str::parse).transpose();
    let by_expiration = match params.text("sortProperty") {
        None | Some("createdTime") => false,
        Some("expirationTime") => true,
        Some(other) => {
            let message = format!("sortProperty is {other:?}; it must be createdTime or expirationTime");
            return Err(ApiError::argument(message));
        }
    };
    let descending = params.descending()?;
    if params.text("textSearch").is_some() {
        return Err(ApiError::argument("the text of calls is not searched; leave textSearch out"));
    }
    let page_size = params.page_size(RPC_PAGE_MAX)?;
    Ok(StoredCallsRequest {
        status: status.map_err(ApiError::argument)?,
        by_expiration,
        descending,
        page: params.number("page")?.unwrap_or(0),
        page_size,
    })
}

/// ThingsBoard's `Rpc`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallJson<'a> {
    id: JsonValue,
    created_time: i64,
    tenant_id: JsonValue,
    device_id: JsonValue,
    expiration_time: i64,
    request: JsonValue,
    response: Option<&'a RawValue>,
    status: &'static str,
    additional_info: Option<&'a RawValue>,
}

impl<'a> CallJson<'a> {
    fn of(call: &'a StoredCall) -> Self {
        Self {
            id: entity("RPC", call.id),
            created_time: call.created_at.millis(),
            tenant_id: entity("TENANT", call.tenant),
            device_id: entity("DEVICE", call.device),
            expiration_time: call.expires_at.millis(),
            request: request(call),
            response: raw(call.answer.as_deref()),
            status: call.status.name(),
            additional_info: raw(call.storing.additional_info.as_deref()),
        }
    }
}

/// ThingsBoard's `ToDeviceRpcRequest`. The parameters are text there.
fn request(call: &StoredCall) -> JsonValue {
    json!({
        "id": call.id,
        "tenantId": entity("TENANT", call.tenant),
        "deviceId": entity("DEVICE", call.device),
        "oneway": call.one_way,
        "expirationTime": call.expires_at.millis(),
        "body": { "method": call.method, "params": call.params },
        "persisted": true,
        "retries": call.storing.retries,
    })
}

fn raw(text: Option<&str>) -> Option<&RawValue> {
    text.and_then(|text| serde_json::from_str(text).ok())
}

#[cfg(test)]
mod tests {
    use hub::rpc::RpcStatus;

    use super::*;

    #[test]
    fn a_page_is_described_as_in_thingsboard() {
        let parse = |query: &str| parse(&Params::parse(query));
        let request = parse(
            "pageSize=10&page=2&rpcStatus=QUEUED&sortProperty=expirationTime&sortOrder=DESC&textSearch=",
        );
        let expected = StoredCallsRequest {
            status: Some(RpcStatus::Queued),
            by_expiration: true,
            descending: true,
            page: 2,
            page_size: 10,
        };
        assert_eq!(request, Ok(expected));
        for (query, part) in [
            ("page=1", "name the page"),
            ("pageSize=0", "pageSize is 0"),
            ("pageSize=1&rpcStatus=DELETED", "unknown status"),
            ("pageSize=1&sortProperty=request", "sortProperty"),
            ("pageSize=1&sortOrder=up", "sortOrder"),
            ("pageSize=1&textSearch=a", "textSearch"),
        ] {
            let error = parse(query).unwrap_err();
            assert!(error.message.contains(part), "{query}: {}", error.message);
        }
    }
}
