//! The OpenAPI document of the HTTP door: `GET /api/openapi.json`.
//!
//! `operations.json` describes each route in a few words, `schemas.json` holds the shapes of bodies and answers. The document is
//! assembled from both. A test compares the operations with the routes of the door, so neither can have what the other lacks.
//!
//! [`check`] refuses requests of ThingsBoard's interface and our own that have what the document does not describe.

mod check;
mod document;
mod members;
mod parameters;
#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod tests;
mod words;

use std::sync::LazyLock;

use axum::response::Response;
use bytes::Bytes;

pub(crate) use self::check::check;
use crate::http::tools::json::json_response;
use crate::http::tools::route_list::Routes;

/// The document as JSON text. It never changes while the server runs.
static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| document::assemble().to_string().into());

pub(crate) fn routes() -> Routes {
    Routes::default().get_compressed("/api/openapi.json", show)
}

/// `GET /api/openapi.json`: needs no login.
async fn show() -> Response {
    json_response(DOCUMENT.clone().into())
}
