//! Manages API keys. The door logs each change, never a key.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::caller::Role;
use hub::registry::{ApiKey, NewApiKey, User};
use model::Timestamp;
use serde::Deserialize;
use serde_json::{Value as JsonValue, json};

use crate::error::ApiError;
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, PathOf, path_id};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewKey {
    login: String,
    name: String,
    role: String,
    /// Milliseconds since 1970; never if it is missing.
    expires_time: Option<i64>,
}

/// `GET /api/tacho/api-keys`: the keys of all users of the tenant for an administrator, otherwise the caller's own.
pub(crate) async fn list(
    State(state): State<Arc<HttpState>>,
    session: Session,
) -> Result<Response, ApiError> {
    let keys = state.hub.api_keys(session.caller());
    let keys: Vec<_> = keys.iter().map(|(user, key)| key_json(user, key)).collect();
    Ok(Json(json!({ "apiKeys": keys })).into_response())
}

/// `POST /api/tacho/api-keys`: the answer has the key itself in `key`. It cannot be read later.
pub(crate) async fn add(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<NewKey>,
) -> Result<Response, ApiError> {
    let role: Role = new.role.parse().map_err(ApiError::argument)?;
    let expires_at = new.expires_time.map(|millis| {
        let reason = format!("expiresTime {millis} is not a time in milliseconds");
        Timestamp::from_millis(millis).ok_or_else(|| ApiError::argument(reason))
    });
    let expires_at = expires_at.transpose()?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let add = move || {
        let new = NewApiKey { login: &new.login, name: &new.name, role, expires_at };
        hub.add_api_key(&caller, new)
    };
    let (key, secret) = state.changes.run(add).await??;
    let user = state.hub.registry().user_by_id(key.user);
    let mut answer = user.map(|user| key_json(&user, &key)).unwrap_or_default();
    answer["key"] = secret.into();
    tracing::info!(by = session.caller().login(), name = key.name, "API keys: added a key");
    Ok(Json(answer).into_response())
}

/// `DELETE /api/tacho/api-keys/{id}`: ends the key's sessions.
pub(crate) async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<(), ApiError> {
    let id = path_id(&id)?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let key = state.changes.run(move || hub.delete_api_key(&caller, id)).await??;
    tracing::info!(by = session.caller().login(), name = key.name, "API keys: deleted a key");
    Ok(())
}

fn key_json(user: &User, key: &ApiKey) -> JsonValue {
    json!({
        "id": key.id,
        "login": user.login,
        "name": key.name,
        "role": key.role.name(),
        "createdTime": key.created_at.millis(),
        "expiresTime": key.expires_at.map(Timestamp::millis),
    })
}
