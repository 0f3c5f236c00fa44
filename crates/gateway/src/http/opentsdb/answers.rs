//! Answers in the shapes of OpenTSDB.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::error::ApiError;
use crate::http::error_response::RefusalLabel;

/// An answer with a JSON body.
pub(super) fn json_answer(status: StatusCode, body: String) -> Response {
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=UTF-8"))];
    (status, json, body).into_response()
}

/// The refusal of a whole request.
pub(super) fn refusal(error: &ApiError) -> Response {
    let body = json!({ "error": { "code": error.status.as_u16(), "message": error.message } });
    let mut response = json_answer(error.status, body.to_string());
    let headers = response.headers_mut();
    if let Some(seconds) = error.retry_after_s {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    if error.status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"OpenTSDB\""));
    }
    response.extensions_mut().insert(RefusalLabel(error.label));
    response
}
