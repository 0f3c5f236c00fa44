//! Rows for a sensor from outside.
//!
//! GSN gives them to the sensor's wrapper `zeromq-push`. Here they become rows of the sensor's output at once, with the durability of the
//! sensor's device.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hub::caller::{Action, Caller};
use hub::{Message, SeriesOwner};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::super::refusal::Refusal;
use super::super::request_context::RequestCaller;
use super::super::sensor::Sensor;
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::json::Json as JsonAnswer;
use crate::http::tools::messages::{Stored, store_message};
use crate::http::tools::request::{PathOf, read_body};
use crate::http::tools::state::HttpState;

/// The topic in dead letters of these requests.
const TOPIC: &str = "/api/sensors/{sensor}/data";
/// How to raise the limit of the body.
const BODY_SETTING: &str = ", or raise http.body_bytes_max";

/// A feature with rows.
#[derive(Debug, Deserialize)]
struct Body {
    properties: Properties,
}

#[derive(Debug, Deserialize)]
struct Properties {
    fields: Vec<Named>,
    values: Vec<Vec<Json>>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

/// `POST /api/sensors/{sensor}/data`
pub(super) async fn rows(
    State(state): State<Arc<HttpState>>,
    PathOf(name): PathOf<String>,
    RequestCaller(caller): RequestCaller,
    peer: Peer,
    request: Request,
) -> Result<Response, Refusal> {
    caller.check(Action::Write)?;
    let sensor = Sensor::named(&state.sensors, &caller, &name)?;
    let account = state.body_account(Sender::caller(&caller));
    let body = read_body(request, state.options.body_bytes_max, BODY_SETTING, account).await?;
    let payload = payload(&sensor, &body.bytes)?;
    store_rows(&state, &caller, &sensor, (TOPIC, &payload), peer).await?;
    Ok(JsonAnswer(json!({ "status": "success" })).into_response())
}

/// Stores rows of a sensor's output, as telemetry of its device. The topic is that of dead letters.
pub(in super::super) async fn store_rows(
    state: &HttpState,
    caller: &Caller,
    sensor: &Sensor,
    (topic, payload): (&str, &[u8]),
    Peer(peer): Peer,
) -> Result<(), Refusal> {
    let device = state.hub.device_by_name(caller, sensor.device())?;
    let sent = Message { owner: SeriesOwner::from(&device), door: state.options.door, topic, payload };
    match store_message(&state.hub, &sent, peer).await? {
        Stored::Rows => Ok(()),
        Stored::Nothing => Err(Refusal::argument("the request has no values to store")),
    }
}

/// The rows as telemetry of a device.
pub(super) fn payload(sensor: &Sensor, body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let form = "{\"properties\":{\"fields\":[{\"name\":\"timestamp\"},...],\"values\":[[milliseconds,value,...],...]}}";
    let Body { properties: Properties { fields, values } } = serde_json::from_slice(body)
        .map_err(|error| Refusal::argument(format!("the body is not {form}: {error}")))?;
    let names: Vec<&str> =
        fields.iter().map(|field| field.name.as_str()).filter(|name| *name != "timestamp").collect();
    let known: Vec<String> =
        names.iter().map(|name| Ok(sensor.field(name)?.name.clone())).collect::<Result<_, Refusal>>()?;
    let rows: Vec<Json> = values
        .into_iter()
        .enumerate()
        .map(|(at, row)| {
            row_json(&known, row).map_err(|fault| Refusal::argument(format!("row {at} {fault}")))
        })
        .collect::<Result<_, _>>()?;
    Ok(Json::Array(rows).to_string().into_bytes())
}

fn row_json(names: &[String], row: Vec<Json>) -> Result<Json, String> {
    let count = row.len();
    let mut row = row.into_iter();
    let ts = row.next().filter(Json::is_i64);
    let ts = ts.ok_or("does not begin with a time in whole milliseconds since 1970")?;
    if count != names.len() + 1 {
        return Err(format!("has {count} values, but there are {} fields and the time", names.len()));
    }
    let mut values = Map::new();
    for (name, value) in names.iter().zip(row) {
        match value {
            Json::Null => {}
            Json::Array(_) | Json::Object(_) => return Err(format!("has no single value for {name}")),
            value => drop(values.insert(name.clone(), value)),
        }
    }
    Ok(json!({ "ts": ts, "values": values }))
}
