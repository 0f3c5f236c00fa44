//! Details of a device for operators: its table, its newest time, and its refused messages.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::Hub;
use hub::caller::{Action, Caller};
use hub::refusals::Refused;
use hub::registry::Device;
use serde_json::{Value as JsonValue, json};

use super::devices::device_json;
use super::json::Json;
use super::limits::REFUSALS_LISTED_MAX;
use super::request::{PathOf, parse_id};
use super::session::Session;
use super::state::HttpState;
use crate::error::ApiError;

/// `GET /api/tacho/devices/{id}`: the device, its table, its number of keys, its newest time, its refusals.
pub(crate) async fn details(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<Response, ApiError> {
    let device = session.device(&state.hub, parse_id(&id)?)?;
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
