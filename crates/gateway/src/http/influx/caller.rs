//! The caller of a write: the forms in which the clients of InfluxDB and Prometheus send their login.

use std::net::SocketAddr;
use std::time::Instant;

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hub::caller::Caller;
use hub::registry::API_KEY_PREFIX;

use crate::error::ApiError;
use crate::http::request::Params;
use crate::http::session::Session;
use crate::http::state::HttpState;
use crate::refusals;

/// A login as it was sent.
#[derive(Debug, PartialEq, Eq)]
enum Login {
    /// An API key or a session token.
    Token(String),
    /// A user name and a password; in place of the password an API key or nothing else.
    Password(String, String),
}

/// The caller of a request: `Authorization: Token KEY`, `Bearer KEY`, `Basic` with user and password, or the parameters `u` and
/// `p`. An API key is a password of any user name, and is checked without the cost of a password.
pub(in crate::http) async fn caller(
    state: &HttpState,
    headers: &HeaderMap,
    params: &Params,
    peer: Option<SocketAddr>,
) -> Result<Caller, ApiError> {
    match login(headers, params)? {
        Login::Token(token) => Ok(Session::open(state, &token)?.caller().clone()),
        Login::Password(_, key) if key.starts_with(API_KEY_PREFIX) => {
            Ok(Session::open(state, &key)?.caller().clone())
        }
        Login::Password(name, password) => {
            let hub = std::sync::Arc::clone(&state.hub);
            let attempt = hub.logins().begin(peer.map(|peer| peer.ip()), &name, Instant::now())?;
            let (registry, login) = (std::sync::Arc::clone(&state.hub), name.clone());
            let check = move || registry.registry().authenticate(&login, &password);
            let user = state.logins.run(check).await??;
            attempt.end(user.is_some(), Instant::now());
            let user = user.ok_or_else(|| {
                refusals::login(&state.hub, hub::Door::Http, peer, &name);
                ApiError::unauthenticated("password", "authorization failed")
            })?;
            Ok(Caller::user(&user))
        }
    }
}

fn login(headers: &HeaderMap, params: &Params) -> Result<Login, ApiError> {
    let wrong = || {
        ApiError::unauthenticated(
            "session",
            "the header Authorization is no `Token KEY`, `Bearer KEY` or `Basic USER:PASSWORD`",
        )
    };
    if let Some(header) = headers.get(header::AUTHORIZATION) {
        let (scheme, value) = header.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(wrong)?;
        let value = value.trim();
        if scheme.eq_ignore_ascii_case("basic") {
            let decoded = BASE64_STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let decoded = decoded.ok_or_else(wrong)?;
            let (name, password) = decoded.split_once(':').ok_or_else(wrong)?;
            return Ok(Login::Password(name.to_owned(), password.to_owned()));
        }
        if !scheme.eq_ignore_ascii_case("token") && !scheme.eq_ignore_ascii_case("bearer") {
            return Err(wrong());
        }
        // Clients of version 2 send `USER:PASSWORD` as a token to servers of version 1.8.
        return Ok(match value.split_once(':') {
            Some((name, password)) => Login::Password(name.to_owned(), password.to_owned()),
            None => Login::Token(value.to_owned()),
        });
    }
    match (params.text("u"), params.text("p")) {
        (Some(name), password) => {
            Ok(Login::Password(name.to_owned(), password.unwrap_or_default().to_owned()))
        }
        _ => Err(ApiError::unauthenticated("session", "unable to parse authentication credentials")),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn every_form_of_a_login_is_read() {
        let of = |header: Option<&'static str>, query: &str| {
            let headers = header.map(|text| (header::AUTHORIZATION, HeaderValue::from_static(text)));
            login(&headers.into_iter().collect(), &Params::parse(query))
                .map_err(|error| error.status.as_u16())
        };
        let token = |text: &str| Ok(Login::Token(text.to_owned()));
        let password = |name: &str, text: &str| Ok(Login::Password(name.to_owned(), text.to_owned()));
        assert_eq!(of(Some("Token abc"), ""), token("abc"));
        assert_eq!(of(Some("bearer abc"), "u=x&p=y"), token("abc"));
        assert_eq!(of(Some("Token me:secret"), ""), password("me", "secret"));
        assert_eq!(of(Some("Basic bWU6c2U6Y3JldA=="), ""), password("me", "se:cret"));
        assert_eq!(of(None, "u=me&p=secret"), password("me", "secret"));
        for header in [None, Some("Token"), Some("Digest x"), Some("Basic ???"), Some("Basic bWU=")] {
            assert_eq!(of(header, "p=secret"), Err(401), "{header:?}");
        }
    }
}
