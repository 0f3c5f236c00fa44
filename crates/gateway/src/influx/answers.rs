//! Answers in the shapes of InfluxDB.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::http::tools::error_response::RefusalLabel;

/// The version that clients are told: the last one whose interface this is.
pub(super) const VERSION: &str = "1.8.10";

/// Which of the two versions a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    V1,
    V2,
}

impl Dialect {
    pub(super) fn refusal(self, error: &ApiError) -> Response {
        let body = match self {
            Self::V1 => json!({ "error": error.message }),
            Self::V2 => json!({ "code": code(error.status), "message": error.message }),
        };
        let mut response = answer(error.status, &body);
        let headers = response.headers_mut();
        if let Some(seconds) = error.retry_after_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if error.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"InfluxDB\""));
        }
        if self == Self::V1 {
            headers.insert(HeaderName::from_static("x-influxdb-error"), header_text(&error.message));
        }
        response.extensions_mut().insert(RefusalLabel(error.label));
        response
    }
}

/// An answer with a JSON body.
pub(super) fn answer(status: StatusCode, body: &Value) -> Response {
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    with_version((status, json, body.to_string() + "\n").into_response())
}

/// An answer without a body.
pub(super) fn no_content() -> Response {
    with_version(StatusCode::NO_CONTENT.into_response())
}

/// Adds the headers that name the version.
pub(super) fn with_version(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("x-influxdb-version"), HeaderValue::from_static(VERSION));
    headers.insert(HeaderName::from_static("x-influxdb-build"), HeaderValue::from_static("OSS"));
    response
}

/// The error code of version 2 for a status.
fn code(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "invalid",
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not found",
        StatusCode::PAYLOAD_TOO_LARGE => "request too large",
        StatusCode::TOO_MANY_REQUESTS => "too many requests",
        StatusCode::SERVICE_UNAVAILABLE => "unavailable",
        StatusCode::NOT_IMPLEMENTED => "not implemented",
        _ => "internal error",
    }
}

/// The text as the value of a header, which has no line breaks.
fn header_text(message: &str) -> HeaderValue {
    let bytes: Vec<u8> =
        message.bytes().map(|byte| if byte < 0x20 || byte == 0x7f { b' ' } else { byte }).collect();
    HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static("refused"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_shape_of_an_error() {
        let error = ApiError::argument("unable to parse 'm\nx'");
        let one = Dialect::V1.refusal(&error);
        assert_eq!(one.headers()["x-influxdb-error"], "unable to parse 'm x'");
        assert_eq!(one.headers()["x-influxdb-version"], VERSION);
        let two = Dialect::V2.refusal(&error);
        assert!(!two.headers().contains_key("x-influxdb-error"));
        assert_eq!(Dialect::V1.refusal(&ApiError::busy("later")).headers()["retry-after"], "1");
    }
}
