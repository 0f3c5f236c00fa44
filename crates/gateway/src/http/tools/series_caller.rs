//! The caller of the interfaces of InfluxDB, OpenTSDB and Prometheus, whose clients log in with each request.
//!
//! | credential | caller |
//! |---|---|
//! | `Authorization: Basic <user:password>`, or the parameters `u` and `p` | the user; a password that is an API key: the key |
//! | `Authorization: Token <key>` or `Bearer <key>` | the API key; `Token <user>:<password>`: the user |
//! | `Authorization: Bearer <token>`, `X-Authorization` | the session, as for the REST interface |
//! | none, or a wrong one | of the default tenant, with the role `time_series.open_role`, if `time_series.open` is set, else nobody |
//!
//! A password is checked slowly, so a right one is remembered until the user's sessions end: as a keyed hash, in memory only.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hub::caller::Caller;
use hub::registry::API_KEY_PREFIX;

use super::connection::Peer;
use super::request::Params;
use super::session::Session;
use super::state::HttpState;
use crate::error::ApiError;
use crate::refusals;

/// The caller of a request to a time-series interface.
#[derive(Debug, Clone)]
pub(crate) struct SeriesCaller(pub(crate) Caller);

impl FromRequestParts<Arc<HttpState>> for SeriesCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<Self, ApiError> {
        let peer = match Peer::from_request_parts(parts, state).await {
            Ok(Peer(peer)) => peer,
            Err(never) => match never {},
        };
        let params = Params::parse(parts.uri.query().unwrap_or_default());
        series_caller(state, &parts.headers, &params, peer).await.map(Self)
    }
}

/// The caller of a request to a time-series interface, for handlers that refuse in a shape of their own.
pub(crate) async fn series_caller(
    state: &HttpState,
    headers: &HeaderMap,
    params: &Params,
    peer: Option<SocketAddr>,
) -> Result<Caller, ApiError> {
    check(state, peer, credential(headers, params)).await
}

/// The caller of a login with a password or an API key, for interfaces without headers.
pub(crate) async fn caller_of_login(
    state: &HttpState,
    peer: Option<SocketAddr>,
    login: &str,
    password: &str,
) -> Result<Caller, ApiError> {
    check(state, peer, Ok(pair(login, password))).await
}

async fn check(
    state: &HttpState,
    peer: Option<SocketAddr>,
    credential: Result<Credential, ApiError>,
) -> Result<Caller, ApiError> {
    let caller = match credential {
        Err(refused) => Err(refused),
        Ok(Credential::None) => Err(unauthenticated("this needs a login")),
        Ok(Credential::Token(token)) => Session::open(state, &token).map(Session::into_caller),
        Ok(Credential::Password { login, password }) => {
            let is_unknown = || state.hub.registry().user_by_login(&login).is_none();
            // Clients of an open InfluxDB send any login with each request. An unknown one is not worth a hash and a place in the log.
            match state.open_caller().filter(|_| is_unknown()) {
                Some(open) => return Ok(open),
                None => check_password(state, peer, login, password).await,
            }
        }
    };
    // Nobody is asked on an open server.
    caller.or_else(|refused| {
        let open = state.open_caller().filter(|_| refused.status == StatusCode::UNAUTHORIZED);
        open.ok_or(refused)
    })
}

/// What a request logs in with.
#[derive(Debug, PartialEq, Eq)]
enum Credential {
    None,
    Token(String),
    Password { login: String, password: String },
}

fn credential(headers: &HeaderMap, params: &Params) -> Result<Credential, ApiError> {
    let header = headers.get("authorization").or_else(|| headers.get("x-authorization"));
    let Some(header) = header else {
        return Ok(match params.text("u") {
            Some(login) => pair(login, params.text("p").unwrap_or_default()),
            None => Credential::None,
        });
    };
    let text = header.to_str().ok().and_then(|text| text.split_once(' '));
    let (scheme, value) =
        text.ok_or_else(|| unauthenticated("the header Authorization has no credential"))?;
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("basic") {
        let decoded = BASE64_STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let decoded = decoded.as_deref().and_then(|text| text.split_once(':'));
        let (login, password) =
            decoded.ok_or_else(|| unauthenticated("the header Authorization is not Basic user:password"))?;
        return Ok(pair(login, password));
    }
    if scheme.eq_ignore_ascii_case("token")
        && let Some((login, password)) = value.split_once(':')
    {
        return Ok(pair(login, password));
    }
    let is_known = ["token", "bearer", "apikey"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    match is_known {
        true => Ok(Credential::Token(value.to_owned())),
        false => Err(unauthenticated("the header Authorization has an unknown scheme")),
    }
}

/// A login with a password. Clients that know no tokens send an API key as the password.
fn pair(login: &str, password: &str) -> Credential {
    match password.starts_with(API_KEY_PREFIX) {
        true => Credential::Token(password.to_owned()),
        false => Credential::Password { login: login.to_owned(), password: password.to_owned() },
    }
}

/// The user with a password.
async fn check_password(
    state: &HttpState,
    peer: Option<SocketAddr>,
    login: String,
    password: String,
) -> Result<Caller, ApiError> {
    let registry = state.hub.registry();
    if let Some(user) = registry.user_by_login(&login)
        && state.passwords.is_right(&user, &password)
    {
        return Ok(Caller::user(&user));
    }
    let attempt = state.hub.logins().begin(peer.map(|peer| peer.ip()), &login, Instant::now())?;
    let hub = Arc::clone(&state.hub);
    let (name, secret) = (login.clone(), password.clone());
    let user = state.logins.run(move || hub.registry().authenticate(&name, &secret)).await??;
    attempt.end(user.is_some(), Instant::now());
    let Some(user) = user else {
        refusals::login(&state.hub, state.options.door, peer, &login);
        return Err(ApiError::unauthenticated("password", "user name or password is wrong"));
    };
    state.passwords.remember(&user, &password);
    Ok(Caller::user(&user))
}

fn unauthenticated(fault: &str) -> ApiError {
    let how = "send `Authorization: Basic <user:password>`, `Authorization: Token <API key>`, or the parameters u and p";
    ApiError::unauthenticated("session", format!("{fault}; {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(header: Option<&'static str>, query: &str) -> Result<Credential, u16> {
        let headers = header.map(|value| ("authorization".parse().unwrap(), value.parse().unwrap()));
        credential(&headers.into_iter().collect(), &Params::parse(query))
            .map_err(|error| error.status.as_u16())
    }

    fn password(login: &str, password: &str) -> Credential {
        Credential::Password { login: login.into(), password: password.into() }
    }

    #[test]
    fn every_client_logs_in_in_its_own_way() {
        assert_eq!(of(None, ""), Ok(Credential::None));
        assert_eq!(of(None, "u=ann&p=a%3Ab"), Ok(password("ann", "a:b")));
        assert_eq!(of(Some("Basic YW5uOmE6Yg=="), "u=other"), Ok(password("ann", "a:b")));
        assert_eq!(of(Some("Token ann:secret"), ""), Ok(password("ann", "secret")));
        assert_eq!(of(Some("Token tacho_1"), ""), Ok(Credential::Token("tacho_1".into())));
        assert_eq!(of(Some("bearer abc"), ""), Ok(Credential::Token("abc".into())));
        assert_eq!(of(None, "u=any&p=tacho_1"), Ok(Credential::Token("tacho_1".into())));
    }

    #[test]
    fn what_is_not_a_credential_is_refused() {
        for header in ["Basic", "Basic !!", "Basic YW5u", "Digest abc"] {
            assert_eq!(of(Some(header), ""), Err(401), "{header}");
        }
    }
}
