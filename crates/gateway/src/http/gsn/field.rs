//! `/field` and `/upload`: values of bytes, and rows from a form. The server has neither; both say so.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::asker::{Asked, Asker};
use super::refusal::Refusal;
use super::sensor::Sensor;
use crate::http::state::HttpState;

/// `GET /field` and `POST /field`: GSN's links to values of bytes lead here.
pub(super) async fn value(
    State(state): State<Arc<HttpState>>,
    Asked { caller, params }: Asked,
) -> Result<Response, Refusal> {
    let missing =
        |name| Refusal::argument(format!("the parameter {name} is missing; /field takes vs, field and pk"));
    let name = params.text("vs").ok_or_else(|| missing("vs"))?;
    let sensor = Sensor::named(&state.hub, &caller, name)?;
    let field = sensor.field(params.text("field").ok_or_else(|| missing("field"))?)?;
    Err(Refusal::absent(format!(
        "the field {} of {} has the type {}; /field serves values of bytes, which sensors of this server do not make; \
         /multidata has the values of all other types",
        field.name,
        sensor.name(),
        field.type_name
    )))
}

/// `POST /upload`: GSN gives the form to the `web-input` of a sensor.
pub(super) async fn upload(Asker(_): Asker) -> Result<Response, Refusal> {
    Err(Refusal::absent(
        "sensors of this server have no web-input; report the values to the device that the sensor reads, with \
         POST /api/v1/TOKEN/telemetry",
    ))
}
