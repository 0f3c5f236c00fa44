//! Refusals with GSN's status codes, as plain text.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub::time_series::TaskError;
use timeseries::SourceError;

use crate::error::{ApiError, ErrorCode};
use crate::http::tools::error_response::RefusalLabel;

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) ApiError);

impl Refusal {
    /// 400: an argument has a wrong form or value.
    pub(super) fn argument(message: impl Into<String>) -> Self {
        Self(ApiError::argument(message))
    }

    /// 501: a feature of GSN that this server does not have.
    pub(super) fn absent(message: impl Into<String>) -> Self {
        let (status, code) = (StatusCode::NOT_IMPLEMENTED, ErrorCode::BadRequest);
        Self(ApiError::new(status, code, "unsupported", message))
    }

    /// 402, GSN's status for a name of no sensor.
    pub(super) fn no_sensor(name: &str) -> Self {
        let message = format!(
            "The specified virtual sensor doesn't exist: {name:?}. /gsn lists those that you may read"
        );
        let (status, code) = (StatusCode::PAYMENT_REQUIRED, ErrorCode::NotFound);
        Self(ApiError::new(status, code, "not_found", message))
    }

    /// 403, GSN's status for a name of no field.
    pub(super) fn no_field(message: String) -> Self {
        let (status, code) = (StatusCode::FORBIDDEN, ErrorCode::NotFound);
        Self(ApiError::new(status, code, "not_found", message))
    }

    /// The headers and the label of a refusal with this body.
    pub(super) fn with_body(&self, content_type: &'static str, body: String) -> Response {
        let Self(error) = self;
        let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static(content_type))];
        let mut response = (error.status, content_type, body).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = error.retry_after_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if error.status == StatusCode::UNAUTHORIZED {
            let basic = HeaderValue::from_static("Basic realm=\"GSN Access Control\"");
            headers.insert(header::WWW_AUTHENTICATE, basic);
        }
        response.extensions_mut().insert(RefusalLabel(error.label));
        response
    }
}

impl<E: Into<ApiError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// The refusal of a read that ran.
pub(super) fn refused_task(error: TaskError<SourceError>) -> Refusal {
    match error {
        TaskError::Engine(error) => Refusal::from(error),
        TaskError::Task(error) => Refusal(ApiError::internal(error.to_string())),
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = format!("{}\n", self.0.message);
        self.with_body("text/plain; charset=utf-8", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_text_with_its_status() {
        let refused = Refusal::no_sensor("ms3").into_response();
        assert_eq!(refused.status(), 402);
        assert_eq!(refused.headers()["content-type"], "text/plain; charset=utf-8");
        let login = Refusal(ApiError::unauthenticated("session", "log in")).into_response();
        assert_eq!(login.headers()["www-authenticate"], "Basic realm=\"GSN Access Control\"");
        assert_eq!(Refusal(ApiError::busy("later")).into_response().headers()["retry-after"], "1");
    }
}
