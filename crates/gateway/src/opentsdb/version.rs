//! What clients ask besides writing.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::answers::{json_answer, refusal};
use crate::error::ApiError;
use crate::http::tools::series_caller::SeriesCaller;
use crate::http::tools::state::HttpState;

/// The version whose interface this is.
pub(super) const VERSION: &str = "2.4.0";

/// `/api/version`.
pub(super) async fn version() -> Response {
    let body =
        json!({ "version": VERSION, "short_revision": "", "full_revision": "", "repo_status": "MINT" });
    json_answer(StatusCode::OK, body.to_string())
}

/// `GET /api/tscount`: the number of series of the tenant's own database.
pub(super) async fn series_count(
    State(state): State<Arc<HttpState>>,
    caller: Result<SeriesCaller, ApiError>,
) -> Response {
    match count(&state, caller).await {
        Ok(count) => json_answer(StatusCode::OK, json!({ "tscount": count }).to_string()),
        Err(error) => refusal(&error),
    }
}

async fn count(state: &HttpState, caller: Result<SeriesCaller, ApiError>) -> Result<u64, ApiError> {
    let SeriesCaller(caller) = caller?;
    let hub = Arc::clone(&state.hub);
    Ok(state.reads.run(move || hub.series_count(&caller)).await??)
}
