//! The extremes of a field, and some of its rows for a plot.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use timeseries::{Source, SourceError};

use super::super::aggregate::{Function, OpenInterval};
use super::super::answer_text::{AnswerText, streamed};
use super::super::condition::{Condition, Operand, Operator};
use super::super::read::{Column, Row, Selection};
use super::super::refusal::Refusal;
use super::super::request_context::RequestContext;
use super::super::sensor::Sensor;
use super::super::time::parse_iso;
use super::Format;
use super::data::with_file_name;
use super::refusal::RestRefusal;
use super::text::{RestText, fields_with_time};
use crate::http::tools::request::{Params, PathOf};
use crate::http::tools::state::HttpState;

/// Rows of a preview if the request names no number.
const PREVIEW_ROWS: u64 = 1_000;

/// `GET /rest/sensors/{sensor}/{field}/minmax`: one row with the time of the newest row, the largest and the smallest value.
pub(super) async fn extremes(
    State(state): State<Arc<HttpState>>,
    PathOf((name, field)): PathOf<(String, String)>,
    RequestContext { caller, params }: RequestContext,
) -> Result<Response, RestRefusal> {
    let format = Format::read(&params);
    let refused = RestRefusal::of(format);
    let selection = of_field(Sensor::named(&state.sensors, &caller, &name), &field).map_err(&refused)?;
    let write =
        move |source: &dyn Source, out: &mut AnswerText<'_>| write_extremes(&selection, format, source, out);
    let answer = streamed(&state, caller, format.content_type(), write).await.map_err(&refused)?;
    Ok(with_file_name(answer, format.disposition(&format!("minmax_sensor_{name}_field_{field}"))))
}

/// `GET /rest/preview/{sensor}/{field}`: about `size` rows, evenly spread.
pub(super) async fn preview(
    State(state): State<Arc<HttpState>>,
    PathOf((name, field)): PathOf<(String, String)>,
    RequestContext { caller, params }: RequestContext,
) -> Result<Response, RestRefusal> {
    let format = Format::read(&params);
    let refused = RestRefusal::of(format);
    let mut selection = of_field(Sensor::named(&state.sensors, &caller, &name), &field).map_err(&refused)?;
    selection.conditions = bounds(&params).map_err(&refused)?;
    let size: Option<u64> = params.number("size").map_err(Refusal::from).map_err(&refused)?;
    let size = size.filter(|size| *size > 0).unwrap_or(PREVIEW_ROWS);
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| {
        write_preview(&selection, size, format, source, out)
    };
    let answer = streamed(&state, caller, format.content_type(), write).await.map_err(&refused)?;
    Ok(with_file_name(answer, format.disposition(&format!("preview_sensor_{name}_fields_{field}"))))
}

fn of_field(sensor: Result<Sensor, Refusal>, field: &str) -> Result<Selection, Refusal> {
    let sensor = sensor?;
    let fields = vec![Column::of(sensor.field(field)?)];
    Ok(Selection { fields, ..Selection::all(sensor) })
}

/// `from` and `to`, if they are given.
fn bounds(params: &Params) -> Result<Vec<Condition>, Refusal> {
    let mut bounds = Vec::new();
    for (name, operator) in [("from", Operator::AtLeast), ("to", Operator::AtMost)] {
        if let Some(text) = params.text(name) {
            let millis = parse_iso(text).ok_or_else(|| {
                Refusal::argument(format!(
                    "Malformed date for 'from' or 'to' field! {name} is {text:?}; a time is such as 2026-11-27T20:15:30"
                ))
            })?;
            bounds.push(Condition::new(Operand::Time, operator, millis as f64));
        }
    }
    Ok(bounds)
}

fn write_extremes(
    selection: &Selection,
    format: Format,
    source: &dyn Source,
    out: &mut AnswerText<'_>,
) -> Result<(), SourceError> {
    let [mut max, mut min] = [Function::Max, Function::Min].map(|function| OpenInterval::new(function, 0, 1));
    let mut newest = None;
    selection.read(source, &mut |row| {
        newest = Some(row.micros);
        [&mut max, &mut min].into_iter().for_each(|one| one.add(row.millis(), row.values));
        ControlFlow::Continue(())
    })?;
    let values: Vec<_> = max.values().chain(min.values()).collect();
    let mut text = RestText::new(format);
    begin(&mut text, selection, out);
    if let Some(micros) = newest {
        text.row(&Row { micros, interval: None, values: &values }, |_| selection.kind(0), &mut out.text);
    }
    end(&text, out);
    Ok(())
}

fn write_preview(
    selection: &Selection,
    size: u64,
    format: Format,
    source: &dyn Source,
    out: &mut AnswerText<'_>,
) -> Result<(), SourceError> {
    let mut rows = 0_u64;
    let all = Selection { fields: Vec::new(), ..selection.clone() };
    all.read(source, &mut |_| {
        rows += 1;
        ControlFlow::Continue(())
    })?;
    let step = (rows / size).max(1);
    let mut text = RestText::new(format);
    begin(&mut text, selection, out);
    let mut at = 0_u64;
    selection.read(source, &mut |row| {
        if at.is_multiple_of(step) {
            text.row(&row, |field| selection.kind(field), &mut out.text);
        }
        at += 1;
        out.send_full()
    })?;
    end(&text, out);
    Ok(())
}

fn begin(text: &mut RestText, selection: &Selection, out: &mut AnswerText<'_>) {
    let fields = fields_with_time(&selection.sensor, &selection.fields);
    text.begin(&mut out.text);
    text.begin_sensor(&selection.sensor, &fields, &mut out.text);
}

fn end(text: &RestText, out: &mut AnswerText<'_>) {
    text.end_sensor(&mut out.text);
    text.end(&mut out.text);
}
