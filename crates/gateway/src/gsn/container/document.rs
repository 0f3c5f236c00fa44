//! The common parts of all answers of `/gsn`.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::super::refusal::Refusal;
use super::super::request_context::RequestContext;
use super::super::sensor::Sensor;
use crate::http::tools::state::HttpState;

/// The first line of every answer. All characters of an answer are ASCII.
pub(super) const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n";

/// The sensor of the parameter `name`.
pub(super) fn named(state: &HttpState, context: &RequestContext) -> Result<Sensor, Refusal> {
    let missing = || Refusal::argument("The virtual sensor name is missing: give it in the parameter name");
    Sensor::named(&state.sensors, &context.caller, context.params.text("name").ok_or_else(missing)?)
}

/// An answer with a text after the declaration.
pub(super) fn document(text: String) -> Response {
    let mut response = format!("{DECLARATION}{text}").into_response();
    set_headers(&mut response);
    response
}

pub(super) fn set_headers(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=iso-8859-1"));
    headers.insert(header::EXPIRES, HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
}
