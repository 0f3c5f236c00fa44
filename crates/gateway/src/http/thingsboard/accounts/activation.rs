//! Activation: a user without a password chooses one with the token of a link. No session is needed.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub::clock::system_now;
use serde::Deserialize;

use super::auth::pair;
use crate::error::ApiError;
use crate::http::tools::connection::Peer;
use crate::http::tools::request::{JsonBody, Params};
use crate::http::tools::route_list::Routes;
use crate::http::tools::state::HttpState;

/// The routes of activation.
pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/noauth/activate", page).post("/api/noauth/activate", activate)
}

/// Allows the script of the page only.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                                       connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page of a link. It takes the token from its own address.
const PAGE: &str = include_str!("activation.html");

/// `GET /api/noauth/activate?activateToken=`: a page on which the user chooses a password.
async fn page(State(state): State<Arc<HttpState>>, params: Params) -> Result<Response, ApiError> {
    let token = params.text("activateToken").unwrap_or_default();
    state.hub.registry().user_to_activate(token)?;
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    Ok((headers, PAGE).into_response())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Activate {
    activate_token: String,
    password: String,
}

/// `POST /api/noauth/activate`: gives the user the password and answers with the tokens of a session. This server sends no mail, so
/// `sendActivationMail` has no effect beyond ThingsBoard's confirmation by mail.
async fn activate(
    State(state): State<Arc<HttpState>>,
    Peer(peer): Peer,
    JsonBody(Activate { activate_token, password }): JsonBody<Activate>,
) -> Result<Response, ApiError> {
    let hub = Arc::clone(&state.hub);
    // Guesses of tokens wait like guesses of passwords.
    let attempt = hub.logins().begin(peer.map(|peer| peer.ip()), "activation", Instant::now())?;
    let activate = move || hub.registry().activate(&activate_token, &password);
    let activated = state.logins.run(activate).await?;
    attempt.end(activated.is_ok(), Instant::now());
    let user = activated?;
    tracing::info!(user = user.login, "users: a user chose the first password");
    Ok(pair(&state.hub.registry().open_session(&user, system_now())))
}
