//! Virtual sensors: which the server has loaded, and what they have done.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value as JsonValue, json};
use virtual_sensors::{ContainerInfo, FollowerInfo, SensorInfo, SensorState, SourceInfo};

use crate::error::ApiError;
use crate::http::tools::json::Json;
use crate::http::tools::request::PathOf;
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of virtual sensors.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/tacho/sensors", list)
        .get("/api/tacho/sensors/{name}", show)
        .get("/api/tacho/sensors/{name}/chart.svg", chart)
}

/// `GET /api/tacho/sensors`: the sensors that the caller may read, sorted by name.
async fn list(State(state): State<Arc<HttpState>>, session: Session) -> Result<Response, ApiError> {
    let sensors = state.sensors.sensors(session.caller())?;
    let sensors: Vec<_> = sensors.iter().map(|sensor| summary(sensor)).collect();
    let container = state.sensors.container(session.caller())?.map(|said| container(&said));
    Ok(Json(json!({ "sensors": sensors, "container": container })).into_response())
}

/// `GET /api/tacho/sensors/{name}`: a sensor with its fields, what it has counted, and how it is computed.
async fn show(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(name): PathOf<String>,
) -> Result<Response, ApiError> {
    match state.sensors.sensor(session.caller(), &name)? {
        Some(sensor) => Ok(Json(details(&sensor)).into_response()),
        None => Err(ApiError::not_found(format!(
            "there is no virtual sensor {name:?}; GET /api/tacho/sensors lists them"
        ))),
    }
}

/// `GET /api/tacho/sensors/{name}/chart.svg`: the newest rows of a sensor of the class Chart, drawn.
async fn chart(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(name): PathOf<String>,
) -> Result<Response, ApiError> {
    let sensor = state.sensors.sensor(session.caller(), &name)?;
    match sensor.and_then(|sensor| sensor.chart.clone()) {
        Some(chart) => Ok(([(header::CONTENT_TYPE, "image/svg+xml")], chart.svg()).into_response()),
        None => Err(ApiError::not_found(format!(
            "there is no virtual sensor {name:?} of the class Chart; GET /api/tacho/sensors lists the sensors"
        ))),
    }
}

fn summary(sensor: &SensorInfo) -> JsonValue {
    let reason = match &sensor.state {
        SensorState::Running => None,
        SensorState::Failed { reason } => Some(reason),
    };
    json!({
        "name": sensor.name,
        "state": sensor.state.name(),
        "reason": reason,
        "problem": sensor.problem,
        "file": sensor.file,
        "table": present(&sensor.table),
        "device": present(&sensor.device),
        "elements": sensor.counters.elements,
        "rows": sensor.counters.rows,
        "faults": sensor.counters.faults,
        "sources": sensor.sources.iter().map(source).collect::<Vec<_>>(),
        "followers": sensor.followers.iter().map(follower).collect::<Vec<_>>(),
    })
}

/// A source whose elements come from outside of the store.
fn source(source: &SourceInfo) -> JsonValue {
    let state = &source.state;
    json!({
        "source": source.source,
        "wrapper": source.wrapper,
        "address": source.address,
        "device": source.device,
        "connected": state.is_connected,
        "elements": state.elements,
        "refused": state.refused,
        "dropped": state.dropped,
        "failures": state.failures,
        "lastError": state.last_error,
    })
}

/// A copy of the output in the target.
fn follower(follower: &FollowerInfo) -> JsonValue {
    let report = &follower.report;
    json!({
        "name": follower.name,
        "target": follower.target,
        "connected": report.is_connected,
        "rows": follower.rows,
        "rowsBehind": follower.rows_behind,
        "failures": report.failures,
        "refused": report.refused,
        "lastError": report.last_error,
    })
}

/// The file of the container.
fn container(container: &ContainerInfo) -> JsonValue {
    json!({
        "file": container.file,
        "name": container.name,
        "author": container.author,
        "email": container.email,
        "description": container.description,
        "storage": container.storage,
        "notes": container.notes,
        "problem": container.problem,
    })
}

fn details(sensor: &SensorInfo) -> JsonValue {
    let mut details = summary(sensor);
    let fields = sensor.fields.iter().map(|field| {
        let (name, unit, description) = (&field.name, &field.unit, &field.description);
        json!({ "name": name, "type": field.data_type.to_string(), "unit": unit, "description": description })
    });
    let pairs = sensor.addressing.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
    details["description"] = sensor.description.as_str().into();
    details["addressing"] = JsonValue::Object(pairs.collect());
    details["fields"] = fields.collect();
    details["notes"] = json!(sensor.notes);
    details["waitsFor"] = json!(sensor.waits_for);
    details["explanation"] = sensor.explanation.as_str().into();
    let counters = &sensor.counters;
    details["counters"] = json!({
        "elements": counters.elements,
        "outOfOrder": sensor.rows_out_of_order,
        "late": counters.late,
        "releasedEarly": counters.released_early,
        "overflowed": counters.overflowed,
        "slidesSkipped": counters.slides_skipped,
        "executions": counters.executions,
        "executionsRefused": counters.executions_refused,
        "rows": counters.rows,
        "rowsOverRate": counters.rows_over_rate,
        "rowsOfKnownTime": counters.rows_of_known_time,
        "rowsWithNulls": counters.rows_with_nulls,
        "sentencesRefused": counters.sentences_refused,
        "rowsWithoutPosition": counters.rows_without_position,
        "scriptsStopped": counters.scripts_stopped,
        "scriptRunsLeftOut": counters.script_runs_left_out,
        "rowsRefused": sensor.rows_refused,
        "faults": counters.faults,
        "lastFault": counters.last_fault,
        "turnsOverBudget": sensor.turns_over_budget,
        "devicesLeftOut": sensor.devices_left_out,
        "elementsHeld": sensor.elements_held,
        "bytesHeld": sensor.bytes_held,
    });
    details
}

/// A sensor that has never run has no table and no device.
fn present(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}
