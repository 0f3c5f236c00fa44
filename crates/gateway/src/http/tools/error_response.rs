//! Errors as HTTP responses: JSON bodies in ThingsBoard's shape.

use std::convert::Infallible;

use axum::extract::rejection::PathRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::ApiError;

/// The answer of a handler.
pub(crate) type Answer = Result<Response, ApiError>;

/// The label of a refusal. A response carries it to the layer that counts refusals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefusalLabel(pub(crate) &'static str);

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        Self::bad_request(format!("the path cannot be read: {}", rejection.body_text()))
    }
}

impl From<Infallible> for ApiError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[derive(Serialize)]
struct Body<'a> {
    status: u16,
    message: &'a str,
    #[serde(rename = "errorCode")]
    error_code: u16,
    timestamp: i64,
}

impl ApiError {
    /// The body as JSON text.
    pub(crate) fn body(&self) -> Vec<u8> {
        let body = Body {
            status: self.status.as_u16(),
            message: &self.message,
            error_code: self.code as u16,
            timestamp: hub::clock::system_now().millis(),
        };
        serde_json::to_vec(&body).expect("BUG: numbers and text are always JSON")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let mut response = (self.status, headers, self.body()).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response.extensions_mut().insert(RefusalLabel(self.label));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_has_the_four_fields() {
        let body: serde_json::Value = serde_json::from_slice(&ApiError::argument("a \"b\"").body()).unwrap();
        assert_eq!((&body["status"], &body["errorCode"]), (&400.into(), &30.into()));
        assert_eq!(body["message"], "a \"b\"");
        assert!(body["timestamp"].as_i64().unwrap() > 1_600_000_000_000);
    }
}
