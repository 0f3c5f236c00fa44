//! Answers in the shapes of OpenTSDB.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub::annotations::AnnotationError;
use hub::caller::Forbidden;
use hub::registry::RegistryError;
use serde_json::json;

use crate::blocking::PoolError;
use crate::error::ApiError;
use crate::http::tools::error_response::RefusalLabel;

/// An answer with a JSON body.
pub(super) fn json_answer(status: StatusCode, body: impl Into<axum::body::Body>) -> Response {
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=UTF-8"))];
    (status, json, body.into()).into_response()
}

/// The refusal of a whole request.
pub(super) fn refusal(error: &ApiError) -> Response {
    refused(error, None)
}

/// The refusal of a request that reads.
#[derive(Debug)]
pub(super) struct Refusal {
    error: ApiError,
    /// The member `details`.
    details: Option<String>,
}

impl Refusal {
    /// 400.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        ApiError::bad_request(message).into()
    }

    /// Adds what explains the message or states what to do.
    #[must_use]
    pub(super) fn with_details(self, details: impl Into<String>) -> Self {
        Self { details: Some(details.into()), ..self }
    }

    #[cfg(test)]
    pub(super) fn message(&self) -> &str {
        &self.error.message
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self { error, details: None }
    }
}

impl From<AnnotationError> for Refusal {
    fn from(error: AnnotationError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<RegistryError> for Refusal {
    fn from(error: RegistryError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<Forbidden> for Refusal {
    fn from(error: Forbidden) -> Self {
        ApiError::from(error).into()
    }
}

impl From<PoolError> for Refusal {
    fn from(error: PoolError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<hub::Error> for Refusal {
    fn from(error: hub::Error) -> Self {
        ApiError::from(error).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        refused(&self.error, self.details.as_deref())
    }
}

fn refused(error: &ApiError, details: Option<&str>) -> Response {
    let mut body = json!({ "error": { "code": error.status.as_u16(), "message": error.message } });
    if let Some(details) = details {
        body["error"]["details"] = details.into();
    }
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
