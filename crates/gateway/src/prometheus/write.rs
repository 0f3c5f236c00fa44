//! The request that writes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub::OpenDatabase;
use hub::caller::Caller;
use hub::points::Points;
use hub::registry::RegistryError;
use wire::prometheus::{PrometheusError, REQUEST_BYTES_MAX, unpack};

use super::rows::{UnstoredSamples, collect};
use crate::error::{ApiError, ErrorCode};
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::request::{Params, read_body};
use crate::http::tools::series_caller::series_caller;
use crate::http::tools::series_rows::{Target, store_rows};
use crate::http::tools::state::HttpState;

/// The name of the request in dead letters.
const TOPIC: &str = "/api/v1/write";
/// Numbers of samples, and the first reasons of refusals. Remote write 2.0 has the first header.
const SAMPLES_WRITTEN: HeaderName = HeaderName::from_static("x-prometheus-remote-write-samples-written");
const SAMPLES_REFUSED: HeaderName = HeaderName::from_static("x-tacho-samples-refused");
const REFUSALS: HeaderName = HeaderName::from_static("x-tacho-refusals");
/// Characters of the reasons in a header. Some senders accept only short heads of answers.
const REASONS_CHARS_MAX: usize = 1024;

/// `POST /api/v1/write`: 204 once the samples are on the disk, also if some are refused. 429 and 503 ask the sender to try again, 400 not to.
pub(super) async fn write(
    State(state): State<Arc<HttpState>>,
    params: Params,
    Peer(peer): Peer,
    request: Request,
) -> Result<Response, ApiError> {
    // A block that holds the whole request could not move between threads.
    let headers = request.headers();
    check_headers(headers)?;
    let caller = series_caller(&state, headers, &params, peer).await?;
    let database = database(&state, &caller, &params)?;
    let target = Target { caller, database, topic: TOPIC };
    let sender = Sender::caller(&target.caller);
    let body = read_body(request, REQUEST_BYTES_MAX, "", state.body_account(sender)).await?;
    let unpacked =
        unpack(&body.bytes, REQUEST_BYTES_MAX).map_err(|error| ApiError::argument(error.to_string()))?;
    let mut account = state.body_account(sender);
    account.add(unpacked.len())?;
    let request = Arc::new(unpacked);
    let bytes = request.len();
    let malformed = |error: PrometheusError| ApiError::argument(error.to_string());
    let collect = move |points: &mut Points| collect(points, &request).map_err(malformed);
    let (accepted, mut left) = store_rows(&state, &target, bytes, collect).await?;
    accepted.refused.into_iter().for_each(|refused| left.add(refused.reason));
    answer(&state, accepted.rows, &left)
}

/// Refuses what is not version 1: its senders fall back to it.
fn check_headers(headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name: header::HeaderName| {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let refused = |message: String| {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Err(ApiError::new(status, ErrorCode::BadRequest, "encoding", message))
    };
    let kind = text(header::CONTENT_TYPE);
    if kind.contains("proto=") && !kind.contains("prometheus.WriteRequest") {
        return refused(format!("the content type {kind:?} is not supported; send remote write 1.0"));
    }
    match text(header::CONTENT_ENCODING) {
        "" | "snappy" => Ok(()),
        other => refused(format!("the content encoding {other:?} is not supported; send snappy")),
    }
}

fn database(state: &HttpState, caller: &Caller, params: &Params) -> Result<OpenDatabase, ApiError> {
    let Some(name) = params.text("db") else { return Ok(state.hub.own_database(caller)) };
    state.hub.database(caller, name).map_err(|error| match error {
        RegistryError::Unknown { .. } => ApiError::not_found(format!("database not found: {name:?}")),
        error => error.into(),
    })
}

/// The answer for so many stored rows. Senders count a request with an error as refused as a whole, so that is the answer only if
/// nothing was stored.
fn answer(state: &HttpState, rows: usize, left: &UnstoredSamples) -> Result<Response, ApiError> {
    if left.without_number > 0 {
        state.refused("without_number");
    }
    let reasons = left.reasons.join("; ");
    if left.refused > 0 && rows == 0 {
        return Err(ApiError::argument(format!(
            "no sample is stored, {} are refused: {reasons}",
            left.refused
        )));
    }
    let mut answer = StatusCode::NO_CONTENT.into_response();
    let headers = answer.headers_mut();
    headers.insert(SAMPLES_WRITTEN, HeaderValue::from(rows));
    if left.refused > 0 {
        state.refused("samples");
        headers.insert(SAMPLES_REFUSED, HeaderValue::from(left.refused));
        headers.insert(REFUSALS, header_text(&reasons));
    }
    Ok(answer)
}

/// A text as a header: of other than printable ASCII characters, and of its end, there is nothing.
fn header_text(text: &str) -> HeaderValue {
    let printable = text.chars().map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' });
    let text: String = printable.take(REASONS_CHARS_MAX).collect();
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("?"))
}
