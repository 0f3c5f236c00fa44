//! Details of a device for operators: its table, its newest time, and its refused messages.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::Hub;
use hub::caller::Action;
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
    let reasons = session.caller().may(Action::ReadRefused);
    Ok(state.reads.run(move || details_json(&hub, &device, reasons)).await??.into_response())
}

fn details_json(hub: &Hub, device: &Device, reasons: bool) -> Result<Json<JsonValue>, ApiError> {
    let latest = match hub.find_series_of(device)? {
        Some(series) => hub.latest(series, None)?,
        None => Vec::new(),
    };
    let refused = hub.refusals_of(device)?;
    let mut details = device_json(device);
    details["table"] = device.profile.table.as_str().into();
    details["durability"] = device.profile.durability.name().into();
    details["keys"] = latest.len().into();
    details["lastTs"] = latest.iter().map(|one| one.ts.millis()).max().into();
    details["refused"] = refused.map(|refused| refused_json(&refused, reasons)).into();
    Ok(Json(details))
}

/// `GET /api/tacho/refusals`: devices with refused messages since the server began to count, the last refused first.
pub(crate) async fn refusals(State(state): State<Arc<HttpState>>, session: Session) -> Response {
    let found = state.hub.refusals().latest(REFUSALS_LISTED_MAX).into_iter().filter_map(|(id, refused)| {
        // Leaves out deleted devices and those of other tenants.
        let device = session.device(&state.hub, id).ok()?;
        let mut one = refused_json(&refused, session.caller().may(Action::ReadRefused));
        one["id"] = id.to_string().into();
        one["name"] = device.name.as_str().into();
        Some(one)
    });
    Json(json!({ "devices": found.collect::<Vec<_>>() })).into_response()
}

/// A refusal as JSON. A reason may quote the payload, so not every caller may see it.
fn refused_json(refused: &Refused, with_reason: bool) -> JsonValue {
    json!({
        "messages": refused.messages,
        "since": refused.since.millis(),
        "lastTs": refused.last.millis(),
        "door": refused.door,
        "reason": with_reason.then_some(refused.reason.as_str()),
    })
}
