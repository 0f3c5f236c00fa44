//! The rows of sensors.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use timeseries::{Source, SourceError};

use super::super::answer_text::{AnswerText, streamed};
use super::super::json_text::push;
use super::super::limits::SENSORS_MAX;
use super::super::multidata::write_xml;
use super::super::read::{Row, Selection};
use super::super::refusal::Refusal;
use super::super::request_context::RequestContext;
use super::super::sensor::Sensor;
use super::super::time::{TimeFormat, TimeText};
use super::csv::{data_head, push_row};
use super::feature::{Extent, FeatureText, TIME, about};
use super::request::{Format, selection, time_format};
use crate::http::tools::request::PathOf;
use crate::http::tools::state::HttpState;

/// `GET /api/sensors/{sensor}/data`
pub(super) async fn data(
    State(state): State<Arc<HttpState>>,
    PathOf(name): PathOf<String>,
    RequestContext { caller, params }: RequestContext,
) -> Result<Response, Refusal> {
    let selection = selection(Sensor::named(&state.sensors, &caller, &name)?, &params)?;
    let (format, times) = (Format::read(&params)?, time_format(&params)?);
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| match format {
        Format::Json => write_feature(&selection, times, source, out),
        Format::Csv => write_csv(&selection, times, source, out),
        Format::Xml => write_xml(&[selection], times, source, out),
    };
    streamed(&state, caller, format.content_type(), write).await
}

/// `GET /api/sensors/search?vsnames=a,b`: the rows of several sensors.
pub(super) async fn search(
    State(state): State<Arc<HttpState>>,
    RequestContext { caller, params }: RequestContext,
) -> Result<Response, Refusal> {
    let names: Vec<&str> = params.list("vsnames").collect();
    if names.is_empty() || names.len() > SENSORS_MAX {
        return Err(Refusal::argument(format!(
            "vsnames has {} names; it must have 1 to {SENSORS_MAX}, separated by commas",
            names.len()
        )));
    }
    let of = |name: &&str| selection(Sensor::named(&state.sensors, &caller, name)?, &params);
    let selections: Vec<Selection> = names.iter().map(of).collect::<Result<_, _>>()?;
    let (format, times) = (Format::read(&params)?, time_format(&params)?);
    if format == Format::Csv {
        return Err(Refusal::absent(
            "this server does not make archives of CSV files; ask for json or xml, or for each sensor at /api/sensors/NAME/data",
        ));
    }
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| match format {
        Format::Json => write_collection(&selections, times, source, out),
        Format::Csv | Format::Xml => write_xml(&selections, times, source, out),
    };
    streamed(&state, caller, format.content_type(), write).await
}

fn write_collection(
    selections: &[Selection],
    times: TimeFormat,
    source: &dyn Source,
    out: &mut AnswerText<'_>,
) -> Result<(), SourceError> {
    push(&mut out.text, "{\"type\":\"FeatureCollection\",\"features\":[");
    for (at, selection) in selections.iter().enumerate() {
        if at > 0 {
            out.text.push(b',');
        }
        write_feature(selection, times, source, out)?;
    }
    push(&mut out.text, "]}");
    Ok(())
}

/// Writes the rows of a sensor as a feature.
fn write_feature(
    selection: &Selection,
    times: TimeFormat,
    source: &dyn Source,
    out: &mut AnswerText<'_>,
) -> Result<(), SourceError> {
    let mut feature = FeatureText::new(times);
    let sensor = &selection.sensor;
    feature.begin(sensor, &mut out.text);
    selection.read(source, &mut |row| {
        feature.row(&at_begin(selection, row), |at| selection.kind(at), &mut out.text);
        out.send_full()
    })?;
    let fields: Vec<_> = std::iter::once(TIME).chain(about(sensor, selection.fields.iter())).collect();
    // GSN has no statistics in an answer with rows.
    feature.end(sensor, &fields, Extent::default(), &mut out.text);
    Ok(())
}

fn write_csv(
    selection: &Selection,
    times: TimeFormat,
    source: &dyn Source,
    out: &mut AnswerText<'_>,
) -> Result<(), SourceError> {
    let mut times = TimeText::new(times);
    push(&mut out.text, &data_head(selection, true));
    selection.read(source, &mut |row| {
        push_row(selection, &at_begin(selection, row), &mut times, &mut out.text);
        out.send_full()
    })
}

/// An aggregate with the time at which its interval begins, as GSN 2.0 has it.
fn at_begin<'a>(selection: &Selection, row: Row<'a>) -> Row<'a> {
    match (selection.aggregation, row.interval) {
        (Some(aggregation), Some(number)) => {
            let micros = number.saturating_mul(aggregation.interval_ms).saturating_mul(1_000);
            Row { micros, ..row }
        }
        _ => row,
    }
}
