//! Refusals in the form of the answer.

use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::super::refusal::Refusal;
use super::Format;

/// A refused request.
#[derive(Debug)]
pub(super) struct RestRefusal {
    refusal: Refusal,
    format: Format,
}

impl RestRefusal {
    /// The refusal of a request for an answer in this form.
    pub(super) fn of(format: Format) -> impl Fn(Refusal) -> Self {
        move |refusal| Self { refusal, format }
    }
}

impl From<Refusal> for RestRefusal {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, format: Format::GeoJson }
    }
}

impl IntoResponse for RestRefusal {
    fn into_response(self) -> Response {
        let message = &self.refusal.0.message;
        let body = match self.format {
            Format::Csv => format!("# {message}\n"),
            Format::GeoJson | Format::Json => json!({ "error": message }).to_string(),
        };
        self.refusal.with_body(self.format.content_type(), body)
    }
}
