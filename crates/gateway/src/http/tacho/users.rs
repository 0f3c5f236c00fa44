//! Manages users and the key of session tokens. The door logs each change.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::caller::{Action, Role};
use hub::registry::User;
use serde::Deserialize;
use serde_json::{Value as JsonValue, json};

use crate::error::ApiError;
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, PathOf};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewUser {
    login: String,
    password: String,
    role: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPassword {
    password: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRole {
    role: String,
}

/// `GET /api/tacho/users`
pub(crate) async fn list(
    State(state): State<Arc<HttpState>>,
    session: Session,
) -> Result<Response, ApiError> {
    let users = state.hub.users(session.caller())?;
    let users: Vec<_> = users.iter().map(|user| user_json(user)).collect();
    Ok(Json(json!({ "users": users })).into_response())
}

/// `POST /api/tacho/users`
pub(crate) async fn add(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<NewUser>,
) -> Result<Response, ApiError> {
    session.check(Action::ManageUsers)?;
    let role: Role = new.role.parse().map_err(ApiError::bad_request)?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let add = move || hub.add_user(&caller, &new.login, &new.password, role);
    let added = state.changes.run(add).await??;
    log(&session, &added.login, "added a user");
    Ok(Json(user_json(&added)).into_response())
}

/// `POST /api/tacho/users/{login}/password`: ends the user's sessions.
pub(crate) async fn set_password(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(login): PathOf<String>,
    JsonBody(new): JsonBody<NewPassword>,
) -> Result<(), ApiError> {
    session.check(Action::ManageUsers)?;
    let (hub, caller, user) = (Arc::clone(&state.hub), session.caller().clone(), login.clone());
    state.changes.run(move || hub.set_password(&caller, &user, &new.password)).await??;
    log(&session, &login, "changed a user's password");
    Ok(())
}

/// `POST /api/tacho/users/{login}/role`: ends the user's sessions.
pub(crate) async fn set_role(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(login): PathOf<String>,
    JsonBody(new): JsonBody<NewRole>,
) -> Result<Response, ApiError> {
    session.check(Action::ManageUsers)?;
    let role: Role = new.role.parse().map_err(ApiError::bad_request)?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let changed = state.changes.run(move || hub.set_role(&caller, &login, role)).await??;
    log(&session, &changed.login, "changed a user's role");
    Ok(Json(user_json(&changed)).into_response())
}

/// `DELETE /api/tacho/users/{login}`: ends the user's sessions.
pub(crate) async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(login): PathOf<String>,
) -> Result<(), ApiError> {
    session.check(Action::ManageUsers)?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let deleted = state.changes.run(move || hub.delete_user(&caller, &login)).await??;
    log(&session, &deleted.login, "deleted a user");
    Ok(())
}

/// `POST /api/tacho/session-key`: makes all issued session tokens invalid, including the caller's own.
pub(crate) async fn rotate_key(
    State(state): State<Arc<HttpState>>,
    session: Session,
) -> Result<(), ApiError> {
    session.check(Action::ManageUsers)?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    state.changes.run(move || hub.rotate_session_key(&caller)).await??;
    tracing::info!(by = session.caller().login(), "users: replaced the key of session tokens");
    Ok(())
}

fn user_json(user: &User) -> JsonValue {
    json!({
        "id": user.id,
        "login": user.login,
        "role": user.role.name(),
        "passwordChangedTime": user.password_changed_at.millis(),
    })
}

fn log(session: &Session, user: &str, what: &str) {
    tracing::info!(by = session.caller().login(), user, "users: {what}");
}
