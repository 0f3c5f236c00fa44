//! What clients ask before they write.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::answers::{VERSION, answer, no_content};
use crate::http::tools::request::Params;
use crate::http::tools::state::HttpState;

/// `GET /ping`: 204, with `verbose` 200 and the version.
pub(super) async fn ping(params: Params) -> Response {
    match params.text("verbose") {
        None | Some("0" | "false") => no_content(),
        Some(_) => answer(StatusCode::OK, &json!({ "version": VERSION })),
    }
}

/// `GET /health`: 200 while the store takes rows, else 503 with the reason.
pub(super) async fn health(State(state): State<Arc<HttpState>>) -> Response {
    let sealed = state.hub.status().sealed;
    let (status, word, message) = match &sealed {
        None => (StatusCode::OK, "pass", "ready for queries and writes".to_owned()),
        Some(cause) => {
            let message = format!("the store is read-only since a write failed: {cause}");
            (StatusCode::SERVICE_UNAVAILABLE, "fail", message)
        }
    };
    let body =
        json!({ "name": "influxdb", "message": message, "status": word, "checks": [], "version": VERSION });
    answer(status, &body)
}
