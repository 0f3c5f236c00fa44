//! Devices for operators: many new ones at once, and the details of one: its table, its newest time, and its refused messages.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::Hub;
use hub::caller::{Action, Caller};
use hub::refusals::Refused;
use hub::registry::{BulkDevices, Device, Provisioned};
use serde::{Deserialize, Serialize};
use serde_json::{Value as JsonValue, json};

use crate::error::ApiError;
use crate::http::limits::REFUSALS_LISTED_MAX;
use crate::http::shapes::devices::device_json;
use crate::http::tools::json::{Json, Sequence};
use crate::http::tools::request::{JsonBody, PathOf, path_id};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// `GET /api/tacho/devices/{id}`: the device, its table, its number of keys, its newest time, its refusals.
pub(crate) async fn details(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<Response, ApiError> {
    let device = session.device(&state.hub, path_id(&id)?)?;
    let hub = Arc::clone(&state.hub);
    Ok(state.reads.run(move || details_json(&hub, session.caller(), &device)).await??.into_response())
}

fn details_json(hub: &Hub, caller: &Caller, device: &Device) -> Result<Json<JsonValue>, ApiError> {
    let latest = match hub.find_series_of(caller, device)? {
        Some(series) => hub.latest(caller, series, None)?,
        None => Vec::new(),
    };
    let refused = hub.refusals_of(caller, device)?;
    let mut details = device_json(device);
    details["table"] = device.profile.table.name().into();
    details["durability"] = device.profile.durability.name().into();
    details["keys"] = latest.len().into();
    details["lastTs"] = latest.iter().map(|one| one.ts.millis()).max().into();
    details["refused"] = refused.map(|refused| refused_json(&refused, caller)).into();
    Ok(Json(details))
}

/// `GET /api/tacho/refusals`: devices with refused messages since the server began to count, the last refused first.
pub(crate) async fn refusals(
    State(state): State<Arc<HttpState>>,
    session: Session,
) -> Result<Response, ApiError> {
    let found = state.hub.refused_devices(session.caller(), REFUSALS_LISTED_MAX)?;
    let found = found.iter().map(|(device, refused)| {
        let mut one = refused_json(refused, session.caller());
        one["id"] = device.id.to_string().into();
        one["name"] = device.name.as_str().into();
        one
    });
    Ok(Json(json!({ "devices": found.collect::<Vec<_>>() })).into_response())
}

/// A refusal as JSON. A reason may quote the payload, so not every caller may see it.
fn refused_json(refused: &Refused, caller: &Caller) -> JsonValue {
    json!({
        "messages": refused.messages,
        "since": refused.since.millis(),
        "lastTs": refused.last.millis(),
        "door": refused.door,
        "reason": caller.may(Action::ReadRefused).then_some(refused.reason.as_str()),
    })
}

/// Many devices: `<prefix><n>` with the tokens `<tokenPrefix><n>`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BulkJson {
    count: usize,
    #[serde(default)]
    start_index: u64,
    prefix: String,
    token_prefix: Option<String>,
    profile: Option<String>,
    #[serde(default)]
    existing_ok: bool,
    #[serde(default)]
    list: bool,
}

/// `POST /api/tacho/devices`: all or none, in one transaction.
pub(crate) async fn create_many(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(bulk): JsonBody<BulkJson>,
) -> Result<Response, ApiError> {
    session.check(Action::ManageDevices)?;
    let (hub, list) = (Arc::clone(&state.hub), bulk.list);
    let add = move || {
        let devices = BulkDevices {
            count: bulk.count,
            start_index: bulk.start_index,
            prefix: &bulk.prefix,
            token_prefix: bulk.token_prefix.as_deref(),
            profile: bulk.profile.as_deref(),
            existing_ok: bulk.existing_ok,
        };
        hub.add_devices(session.caller(), devices).map(|provisioned| bulk_answer(&provisioned, list))
    };
    Ok(state.changes.run(add).await??)
}

fn bulk_answer(provisioned: &[Provisioned], list: bool) -> Response {
    #[derive(Serialize)]
    struct Listed<'a> {
        name: &'a str,
        /// Absent for other credentials than a token.
        #[serde(skip_serializing_if = "Option::is_none")]
        token: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct Answer<T> {
        created: usize,
        existing: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        devices: Option<T>,
    }
    let created = provisioned.iter().filter(|new| new.created).count();
    let listed = || {
        provisioned.iter().map(|new| Listed {
            name: &new.device.name,
            token: new.credentials.token().map(|token| &**token),
        })
    };
    let devices = list.then_some(Sequence(listed));
    Json(Answer { created, existing: provisioned.len() - created, devices }).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulk_requests_refuse_members_they_do_not_know() {
        let error = serde_json::from_str::<BulkJson>(r#"{"count":1,"prefix":"d","tokens":"t"}"#).unwrap_err();
        assert!(error.to_string().contains("tokens"), "{error}");
    }
}
