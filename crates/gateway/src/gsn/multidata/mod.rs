//! `/multidata`: the rows of sensors as CSV or XML.

mod csv;
mod form;
mod query_text;
mod request;
#[cfg(test)]
mod tests;
mod xml;

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hub::clock::system_now;
use timeseries::{Source, SourceError};

use self::csv::Csv;
use self::form::RowText;
use self::request::{Format, MultiRequest};
use self::xml::Xml;
use super::answer_text::{AnswerText, streamed};
use super::read::Selection;
use super::refusal::Refusal;
use super::request_context::RequestContext;
use super::sensor::Sensor;
use super::time::{TimeFormat, time_text};
use crate::http::tools::state::HttpState;

/// `GET /multidata` and `POST /multidata`.
pub(super) async fn rows(
    State(state): State<Arc<HttpState>>,
    RequestContext { caller, params }: RequestContext,
) -> Result<Response, Refusal> {
    let visible = Sensor::all(&state.sensors, &caller)?;
    let request = MultiRequest::read(&params, &visible)?;
    let (content_type, disposition) = (content_type(&request), disposition(&request));
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| write(&request, source, out);
    let mut response = streamed(&state, caller, content_type, write).await?;
    let headers = response.headers_mut();
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    headers.insert(header::EXPIRES, HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
    if let Some(disposition) = disposition {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// Writes the rows of sensors as XML, for the other interfaces.
pub(super) fn write_xml(
    selections: &[Selection],
    times: TimeFormat,
    source: &dyn Source,
    out: &mut AnswerText<'_>,
) -> Result<(), SourceError> {
    write_all(selections, false, &mut Xml::new(times), source, out)
}

fn write(request: &MultiRequest, source: &dyn Source, out: &mut AnswerText<'_>) -> Result<(), SourceError> {
    let mut text: Box<dyn RowText> = match &request.format {
        Format::Csv { delimiter } => Box::new(Csv::new(delimiter, request.times)),
        Format::Xml => Box::new(Xml::new(request.times)),
    };
    write_all(&request.selections, request.only_with_rows, text.as_mut(), source, out)
}

fn write_all(
    selections: &[Selection],
    only_with_rows: bool,
    text: &mut dyn RowText,
    source: &dyn Source,
    out: &mut AnswerText<'_>,
) -> Result<(), SourceError> {
    text.begin(&mut out.text);
    for selection in selections {
        if write_sensor(selection, only_with_rows, text, source, out)?.is_break() {
            return Ok(());
        }
    }
    text.end(&mut out.text);
    Ok(())
}

/// Writes the rows of one sensor. `Break` means that nobody takes more.
fn write_sensor(
    selection: &Selection,
    only_with_rows: bool,
    text: &mut dyn RowText,
    source: &dyn Source,
    out: &mut AnswerText<'_>,
) -> Result<ControlFlow<()>, SourceError> {
    let (mut has_head, mut has_rows) = (false, false);
    if !only_with_rows {
        text.head(selection, &mut out.text);
        has_head = true;
    }
    let mut ended = ControlFlow::Continue(());
    selection.read(source, &mut |row| {
        if !has_rows {
            if !has_head {
                text.head(selection, &mut out.text);
                has_head = true;
            }
            text.names(selection, &mut out.text);
            has_rows = true;
        }
        text.row(&row, &mut out.text);
        ended = out.send_full();
        ended
    })?;
    if has_head {
        text.tail(&mut out.text);
    }
    Ok(ended)
}

fn content_type(request: &MultiRequest) -> &'static str {
    match (&request.format, request.inline) {
        (Format::Csv { .. }, true) => "text/plain; charset=utf-8",
        (Format::Csv { .. }, false) => "application/x-download",
        (Format::Xml, _) => "text/xml",
    }
}

/// The name of the file, unless the answer is to be shown.
fn disposition(request: &MultiRequest) -> Option<HeaderValue> {
    if request.inline {
        return None;
    }
    let name = match request.selections.as_slice() {
        [one] => one.sensor.name(),
        _ => "multiple_sensors",
    };
    let time = time_text(system_now().millis(), TimeFormat::Blank).replace(' ', "_").replace(':', "-");
    let ending = if request.format == Format::Xml { "xml" } else { "csv" };
    // A name that a header cannot hold is left out.
    HeaderValue::from_str(&format!("attachment; filename={name}_{time}.{ending}")).ok()
}
