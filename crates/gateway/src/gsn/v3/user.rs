//! The user of a request.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::super::refusal::Refusal;
use super::super::request_context::RequestCaller;
use crate::error::ApiError;
use crate::http::tools::json::Json;
use crate::http::tools::state::HttpState;

/// `GET /api/user`
pub(super) async fn user(
    State(state): State<Arc<HttpState>>,
    RequestCaller(caller): RequestCaller,
) -> Result<Response, Refusal> {
    let user = caller.user_id().and_then(|id| state.hub.registry().user_by_id(id));
    let user = user.ok_or_else(|| {
        Refusal(ApiError::forbidden("a request without a login has no user; log in with POST /oauth2/token"))
    })?;
    Ok(Json(json!({
        "username": user.login,
        "firstname": user.first_name,
        "lastname": user.last_name,
        "email": user.login,
    }))
    .into_response())
}
