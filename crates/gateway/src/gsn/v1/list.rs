//! The sensors, with their newest values on request.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use hub::Order;
use timeseries::{Source, SourceError};

use super::super::answer_text::{AnswerText, streamed};
use super::super::read::Selection;
use super::super::refusal::Refusal;
use super::super::request_context::{RequestCaller, RequestContext};
use super::super::sensor::Sensor;
use super::Format;
use super::data::with_file_name;
use super::refusal::RestRefusal;
use super::text::{RestText, fields};
use crate::http::tools::state::HttpState;

/// `GET /rest/sensors`
pub(super) async fn sensors(
    State(state): State<Arc<HttpState>>,
    RequestContext { caller, params }: RequestContext,
) -> Result<Response, RestRefusal> {
    let format = Format::read(&params);
    let refused = RestRefusal::of(format);
    let sensors = Sensor::all(&state.sensors, &caller).map_err(&refused)?;
    let with_values = params.flag("latest_values").map_err(Refusal::from).map_err(&refused)?;
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| {
        write(&sensors, with_values, format, source, out)
    };
    let answer = streamed(&state, caller, format.content_type(), write).await.map_err(&refused)?;
    Ok(with_file_name(answer, format.disposition("multiple_sensors")))
}

fn write(
    sensors: &[Sensor],
    with_values: bool,
    format: Format,
    source: &dyn Source,
    out: &mut AnswerText<'_>,
) -> Result<(), SourceError> {
    let mut text = RestText::new(format);
    text.begin(&mut out.text);
    for sensor in sensors {
        let selection =
            Selection { newest: Some(1), order: Order::Descending, ..Selection::all(sensor.clone()) };
        text.begin_sensor(sensor, &fields(sensor, &selection.fields), &mut out.text);
        if with_values {
            selection.read(source, &mut |row| {
                text.values(row.values, |at| selection.kind(at), &mut out.text);
                ControlFlow::Break(())
            })?;
        }
        text.end_sensor(&mut out.text);
        if out.send_full().is_break() {
            return Ok(());
        }
    }
    text.end(&mut out.text);
    Ok(())
}

/// `GET /rest/grid/{sensor}`
pub(super) async fn grid(RequestCaller(_): RequestCaller) -> Result<Response, RestRefusal> {
    Err(Refusal::absent("this server has no grids; /rest/sensors/NAME has the rows of a sensor").into())
}
