//! Logins of OAuth 2.0 (RFC 6749): sessions and API keys of this server as bearer tokens.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hub::clock::system_now;
use hub::registry::API_KEY_PREFIX;
use hub::session_token::{ACCESS_TOKEN_SECONDS, TokenPair};
use serde_json::{Value as Json, json};

use super::super::refusal::Refusal;
use crate::error::ApiError;
use crate::http::limits::LOGIN_BODY_BYTES_MAX;
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::request::{Params, read_body};
use crate::http::tools::series_caller::caller_of_login;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// Seconds after which clients ask for an API key again. The key itself may live longer.
const KEY_SECONDS: u64 = 3_600;

/// `POST /oauth2/token`. `client_credentials` takes a user with the password as the secret, or an API key as the secret of any client;
/// `password` and `refresh_token` are those of users.
pub(super) async fn token(
    State(state): State<Arc<HttpState>>,
    Peer(peer): Peer,
    request: Request,
) -> Result<Response, OAuthRefusal> {
    let headers = request.headers().clone();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let account = state.body_account(Sender::Anonymous);
    let body = read_body(request, LOGIN_BODY_BYTES_MAX, "", account).await?;
    let form = String::from_utf8_lossy(&body.bytes).into_owned();
    let params = Params::parse(&format!("{query}&{form}"));
    match params.text("grant_type") {
        Some("client_credentials") => {
            let (id, secret) = client(&headers, &params).ok_or_else(|| {
                OAuthRefusal::new(
                    "invalid_client",
                    "give client_id and client_secret, in the form or by HTTP Basic",
                )
            })?;
            log_in(&state, peer, &id, &secret).await
        }
        Some("password") => match (params.text("username"), params.text("password")) {
            (Some(login), Some(password)) => log_in(&state, peer, login, password).await,
            _ => Err(OAuthRefusal::new("invalid_request", "give username and password in the form")),
        },
        Some("refresh_token") => {
            let token = params.text("refresh_token").unwrap_or_default();
            let pair = state.hub.registry().renew_session(token, system_now())?;
            Session::open(&state, &pair.token)?;
            Ok(pair_answer(&pair))
        }
        Some(other) => Err(OAuthRefusal::new(
            "unsupported_grant_type",
            format!("grant_type is {other:?}; it must be client_credentials, password or refresh_token"),
        )),
        None => Err(OAuthRefusal::new("invalid_request", "grant_type is missing")),
    }
}

/// A new session of a user; or the API key, if that is the secret.
async fn log_in(
    state: &HttpState,
    peer: Option<SocketAddr>,
    login: &str,
    secret: &str,
) -> Result<Response, OAuthRefusal> {
    if secret.starts_with(API_KEY_PREFIX) {
        Session::open(state, secret)?;
        return Ok(answer(secret, KEY_SECONDS, None));
    }
    let caller = caller_of_login(state, peer, login, secret).await?;
    let registry = state.hub.registry();
    let user = caller.user_id().and_then(|id| registry.user_by_id(id));
    let user = user.ok_or_else(|| OAuthRefusal::new("invalid_grant", "the user was deleted meanwhile"))?;
    Ok(pair_answer(&registry.open_session(&user, system_now())))
}

/// The id and the secret of the client.
fn client(headers: &HeaderMap, params: &Params) -> Option<(String, String)> {
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let basic = header.and_then(|text| {
        let (scheme, value) = text.split_once(' ')?;
        let decoded =
            BASE64_STANDARD.decode(value.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
        let decoded = String::from_utf8(decoded).ok()?;
        decoded.split_once(':').map(|(id, secret)| (id.to_owned(), secret.to_owned()))
    });
    basic.or_else(|| {
        let secret = params.text("client_secret")?;
        Some((params.text("client_id").unwrap_or_default().to_owned(), secret.to_owned()))
    })
}

fn pair_answer(pair: &TokenPair) -> Response {
    answer(&pair.token, ACCESS_TOKEN_SECONDS.unsigned_abs(), Some(&pair.refresh_token))
}

fn answer(token: &str, seconds: u64, refresh: Option<&str>) -> Response {
    let mut body = json!({
        "token_type": "Bearer",
        "access_token": token,
        "expires_in": seconds,
        "scope": "all",
    });
    if let Some(refresh) = refresh {
        body["refresh_token"] = refresh.into();
    }
    json_answer(StatusCode::OK, &body)
}

fn json_answer(status: StatusCode, body: &Json) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json; charset=utf-8")], body.to_string()).into_response()
}

/// A refusal in the form of OAuth 2.0, with its error code.
#[derive(Debug)]
pub(super) struct OAuthRefusal(ApiError, &'static str);

impl OAuthRefusal {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self(ApiError::argument(message), code)
    }
}

impl<E: Into<ApiError>> From<E> for OAuthRefusal {
    fn from(error: E) -> Self {
        let error = error.into();
        let code = if error.status == StatusCode::UNAUTHORIZED { "invalid_grant" } else { "invalid_request" };
        Self(error, code)
    }
}

impl IntoResponse for OAuthRefusal {
    fn into_response(self) -> Response {
        let Self(error, code) = self;
        let body = json!({ "error": code, "error_description": error.message });
        Refusal(error).with_body("application/json; charset=utf-8", body.to_string())
    }
}
