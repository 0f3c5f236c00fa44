//! `REQUEST=114` and `116`: the newest rows that satisfy a condition, the newest first.

use axum::response::Response;
use hub::Order;
use timeseries::{Source, SourceError};

use super::super::answer_text::{AnswerText, streamed};
use super::super::condition::parse_joined;
use super::super::read::{Column, Selection};
use super::super::refusal::Refusal;
use super::super::request_context::RequestContext;
use super::super::sensor::Sensor;
use super::super::time::{TimeFormat, TimeText};
use super::super::value::Value;
use super::super::xml::{escape, escaped};
use super::document::{DECLARATION, named, set_headers};
use crate::http::tools::request::Params;
use crate::http::tools::state::HttpState;

/// Answers with rows, and with the place of the sensor in each of them if `with_addressing`.
pub(super) async fn rows(
    state: &HttpState,
    context: RequestContext,
    with_addressing: bool,
) -> Result<Response, Refusal> {
    let selection = selection(named(state, &context)?, &context.params)?;
    let addressing = if with_addressing { addressing(&selection.sensor) } else { String::new() };
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| {
        out.text.extend_from_slice(DECLARATION.as_bytes());
        write(&selection, &addressing, source, out)
    };
    let mut response = streamed(state, context.caller, "text/xml", write).await?;
    set_headers(&mut response);
    Ok(response)
}

/// The rows of the parameters `fields`, `condition` and `window`.
pub(super) fn selection(sensor: Sensor, params: &Params) -> Result<Selection, Refusal> {
    let mut selection = Selection { order: Order::Descending, ..Selection::all(sensor) };
    if let Some(names) = params.text("fields").filter(|names| names.trim() != "*") {
        let columns = names.split(',').map(|name| Ok(Column::of(selection.sensor.field(name.trim())?)));
        selection.fields = columns.collect::<Result<_, Refusal>>()?;
    }
    selection.conditions = parse_joined(params.text("condition").unwrap_or_default())?;
    selection.sensor.check_operands(&selection.conditions)?;
    selection.newest = Some(params.number("window")?.unwrap_or(1));
    Ok(selection)
}

fn addressing(sensor: &Sensor) -> String {
    let fields = sensor.addressing().iter();
    fields
        .map(|(key, value)| format!("<field name=\"{}\">{}</field>\n", escaped(key), escaped(value)))
        .collect()
}

/// Writes the rows.
pub(super) fn write(
    selection: &Selection,
    addressing: &str,
    source: &dyn Source,
    out: &mut AnswerText<'_>,
) -> Result<(), SourceError> {
    out.text.extend_from_slice(b"<result>\n");
    let mut times = TimeText::new(TimeFormat::Container);
    let heads = selection
        .fields
        .iter()
        .map(|field| format!("<field name=\"{}\" unit=\"{}\" >", escaped(&field.name), escaped(&field.unit)));
    let heads: Vec<String> = heads.collect();
    selection.read(source, &mut |row| {
        let text = &mut out.text;
        text.extend_from_slice(b"<stream-element>\n<field name=\"time\" unit=\"\">");
        times.write(row.millis(), text);
        text.extend_from_slice(b"</field>\n");
        for (at, (head, value)) in heads.iter().zip(row.values).enumerate() {
            text.extend_from_slice(head.as_bytes());
            match value {
                None => {}
                Some(Value::Text(value)) => escape(value, text),
                Some(value) => selection.kind(at).write(*value, text),
            }
            text.extend_from_slice(b"</field>\n");
        }
        text.extend_from_slice(addressing.as_bytes());
        text.extend_from_slice(b"</stream-element>\n");
        out.send_full()
    })?;
    out.text.extend_from_slice(b"</result>");
    Ok(())
}
