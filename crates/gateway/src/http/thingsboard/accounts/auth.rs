//! Login, renewal of a session, and the user of a session.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub::clock::system_now;
use hub::session_token::TokenPair;
use serde::Deserialize;

use super::users::user_json;
use crate::error::{ApiError, ErrorCode};
use crate::http::tools::connection::Peer;
use crate::http::tools::json::Json;
use crate::http::tools::request::JsonBody;
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::{Session, no_public_reading};
use crate::http::tools::state::HttpState;
use crate::refusals;

/// The routes of sessions.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/auth/login", login)
        .post("/api/auth/login/public", login_public)
        .post("/api/auth/token", renew)
        .get("/api/auth/user", user)
        .post("/api/auth/logout", logout)
        .post("/api/auth/changePassword", change_password)
}

#[derive(Deserialize)]
pub(crate) struct Login {
    username: String,
    password: String,
}

/// `POST /api/auth/login`
pub(crate) async fn login(
    State(state): State<Arc<HttpState>>,
    Peer(peer): Peer,
    JsonBody(login): JsonBody<Login>,
) -> Result<Response, ApiError> {
    let hub = Arc::clone(&state.hub);
    let Login { username, password } = login;
    let name = username.clone();
    let attempt = hub.logins().begin(peer.map(|peer| peer.ip()), &name, Instant::now())?;
    let check = move || hub.registry().authenticate(&username, &password);
    let user = state.logins.run(check).await??;
    attempt.end(user.is_some(), Instant::now());
    let user = user.ok_or_else(|| {
        refusals::login(&state.hub, state.options.door, peer, &name);
        ApiError::unauthenticated("password", "user name or password is wrong; check both and try again")
    })?;
    Ok(pair(&state.hub.registry().open_session(&user, system_now())))
}

/// `POST /api/auth/login/public`: a session without a login that only reads, if the operator allows it.
pub(crate) async fn login_public(State(state): State<Arc<HttpState>>) -> Result<Response, ApiError> {
    if !state.options.public_read {
        return Err(no_public_reading());
    }
    let registry = state.hub.registry();
    Ok(pair(&registry.open_public_session(registry.default_tenant(), system_now())))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Refresh {
    refresh_token: String,
}

/// `POST /api/auth/token`
pub(crate) async fn renew(
    State(state): State<Arc<HttpState>>,
    JsonBody(refresh): JsonBody<Refresh>,
) -> Result<Response, ApiError> {
    let renewed = state.hub.registry().renew_session(&refresh.refresh_token, system_now())?;
    // Checks the session like every later request.
    Session::open(&state, &renewed.token)?;
    Ok(pair(&renewed))
}

/// `GET /api/auth/user`
pub(crate) async fn user(
    State(state): State<Arc<HttpState>>,
    session: Session,
) -> Result<Response, ApiError> {
    let user = session.caller().user_id().and_then(|id| state.hub.registry().user_by_id(id));
    let user = user.ok_or_else(|| {
        let message = "a public session has no user; log in with POST /api/auth/login";
        ApiError::new(StatusCode::FORBIDDEN, ErrorCode::Permission, "permission", message)
    })?;
    Ok(Json(user_json(&user)).into_response())
}

/// `POST /api/auth/logout`: ends the session of the token. Other sessions of the user continue.
async fn logout(State(state): State<Arc<HttpState>>, session: Session) -> Result<(), ApiError> {
    let hub = Arc::clone(&state.hub);
    state.changes.run(move || hub.registry().end_session(session.caller())).await??;
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangePassword {
    current_password: String,
    new_password: String,
}

/// `POST /api/auth/changePassword`: gives the user another password and ends the user's other sessions. The answer has the tokens
/// of a new one.
async fn change_password(
    State(state): State<Arc<HttpState>>,
    session: Session,
    Peer(peer): Peer,
    JsonBody(ChangePassword { current_password, new_password }): JsonBody<ChangePassword>,
) -> Result<Response, ApiError> {
    let hub = Arc::clone(&state.hub);
    let login = session.caller().login().to_owned();
    let attempt = hub.logins().begin(peer.map(|peer| peer.ip()), &login, Instant::now())?;
    let change = move || hub.change_own_password(session.caller(), &current_password, &new_password);
    let changed = state.logins.run(change).await?;
    attempt.end(changed.is_ok(), Instant::now());
    Ok(pair(&changed?))
}

pub(crate) fn pair(pair: &TokenPair) -> Response {
    Json(serde_json::json!({ "token": pair.token, "refreshToken": pair.refresh_token, "scope": null }))
        .into_response()
}
