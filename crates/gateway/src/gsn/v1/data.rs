//! The rows of a sensor.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hub::Order;
use timeseries::{Source, SourceError};

use super::super::answer_text::{AnswerText, streamed};
use super::super::condition::{Condition, Operand, Operator};
use super::super::read::{Column, Selection};
use super::super::refusal::Refusal;
use super::super::request_context::RequestContext;
use super::super::sensor::Sensor;
use super::super::time::parse_iso;
use super::super::v3::{columns, conditions};
use super::Format;
use super::refusal::RestRefusal;
use super::text::{RestText, fields_with_time};
use crate::http::tools::request::{Params, PathOf};
use crate::http::tools::state::HttpState;

/// `GET /rest/sensors/{sensor}`
pub(super) async fn rows(
    State(state): State<Arc<HttpState>>,
    PathOf(name): PathOf<String>,
    context: RequestContext,
) -> Result<Response, RestRefusal> {
    answer(&state, &name, None, context).await
}

/// `GET /rest/sensors/{sensor}/{field}`
pub(super) async fn rows_of_field(
    State(state): State<Arc<HttpState>>,
    PathOf((name, field)): PathOf<(String, String)>,
    context: RequestContext,
) -> Result<Response, RestRefusal> {
    answer(&state, &name, Some(&field), context).await
}

async fn answer(
    state: &HttpState,
    name: &str,
    field: Option<&str>,
    RequestContext { caller, params }: RequestContext,
) -> Result<Response, RestRefusal> {
    let format = Format::read(&params);
    let refused = RestRefusal::of(format);
    let sensor = Sensor::named(&state.sensors, &caller, name).map_err(&refused)?;
    let mut selection = selection(sensor, field, &params).map_err(&refused)?;
    if field.is_none() {
        // As in GSN the newest row of a sensor comes first.
        selection.order = Order::Descending;
    }
    let file = match field {
        Some(field) => format!("sensor_{name}_field_{field}"),
        None => format!("sensor_{name}_fields"),
    };
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| write(&selection, format, source, out);
    let answer = streamed(state, caller, format.content_type(), write).await.map_err(&refused)?;
    Ok(with_file_name(answer, format.disposition(&file)))
}

/// The rows from `from` to `to`, both of which are needed and inside.
pub(super) fn selection(sensor: Sensor, field: Option<&str>, params: &Params) -> Result<Selection, Refusal> {
    let mut selection = Selection::all(sensor);
    match (field, params.text("fields")) {
        (Some(field), _) => selection.fields = vec![Column::of(selection.sensor.field(field)?)],
        (None, Some(names)) => selection.fields = columns(&selection.sensor, names)?,
        (None, None) => {}
    }
    if let Some(filter) = params.text("filter") {
        selection.conditions = conditions(&selection.sensor, filter)?;
    }
    selection.conditions.extend([limit(params, "from")?, limit(params, "to")?]);
    let size: Option<i64> = params.number("size")?;
    selection.newest = size.and_then(|size| u64::try_from(size).ok()).filter(|size| *size > 0);
    Ok(selection)
}

fn limit(params: &Params, name: &str) -> Result<Condition, Refusal> {
    let millis = params.text(name).and_then(parse_iso).ok_or_else(|| {
        Refusal::argument(format!(
            "Malformed date for 'from' or 'to' field! {name} must be a time in UTC such as 2026-11-27T20:15:30"
        ))
    })?;
    let operator = if name == "from" { Operator::AtLeast } else { Operator::AtMost };
    Ok(Condition::new(Operand::Time, operator, millis as f64))
}

fn write(
    selection: &Selection,
    format: Format,
    source: &dyn Source,
    out: &mut AnswerText<'_>,
) -> Result<(), SourceError> {
    let mut text = RestText::new(format);
    let sensor = &selection.sensor;
    text.begin(&mut out.text);
    text.begin_sensor(sensor, &fields_with_time(sensor, &selection.fields), &mut out.text);
    selection.read(source, &mut |row| {
        text.row(&row, |at| selection.kind(at), &mut out.text);
        out.send_full()
    })?;
    text.end_sensor(&mut out.text);
    text.end(&mut out.text);
    Ok(())
}

/// Names the file of an answer, if it is one.
pub(super) fn with_file_name(mut answer: Response, disposition: Option<String>) -> Response {
    // A name that a header cannot hold is left out.
    if let Some(value) = disposition.and_then(|text| HeaderValue::from_str(&text).ok()) {
        answer.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    answer
}
