//! The caller of a request and its parameters.
//!
//! GSN's clients log in with each request: by HTTP Basic, by the parameters `username` and `password`, or by a bearer token of
//! `/oauth2/token`, which is a session token or an API key here. The other credentials are those of the time-series interfaces
//! (`series_caller`).

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use hub::caller::Caller;

use super::limits::FORM_BYTES_MAX;
use super::refusal::Refusal;
use crate::http::limits::LOGIN_BODY_BYTES_MAX;
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::request::{Params, read_body};
use crate::http::tools::series_caller::{caller_of_login, series_caller};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// A request: the caller, and the parameters of the address and of a form.
#[derive(Debug)]
pub(super) struct RequestContext {
    pub(super) caller: Caller,
    pub(super) params: Params,
}

/// The caller of a request whose body is not a form.
#[derive(Debug)]
pub(super) struct RequestCaller(pub(super) Caller);

impl FromRequest<Arc<HttpState>> for RequestContext {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &Arc<HttpState>) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let peer = peer_of(&mut parts, state).await;
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let headers = parts.headers.clone();
        if parts.method != Method::POST {
            let params = Params::parse(&query);
            let caller = caller_of(state, &headers, &params, peer).await?;
            return Ok(Self { caller, params });
        }
        let of_head = match has_credential(&headers, &Params::parse(&query)) {
            true => Some(caller_of(state, &headers, &Params::parse(&query), peer).await?),
            false => None,
        };
        let form = read_form(state, of_head.as_ref(), Request::from_parts(parts, body)).await?;
        let params = Params::parse(&format!("{query}&{form}"));
        let caller = match of_head {
            Some(caller) => caller,
            None => caller_of(state, &headers, &params, peer).await?,
        };
        Ok(Self { caller, params })
    }
}

impl FromRequestParts<Arc<HttpState>> for RequestCaller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<Self, Refusal> {
        let peer = peer_of(parts, state).await;
        let params = Params::parse(parts.uri.query().unwrap_or_default());
        Ok(Self(caller_of(state, &parts.headers, &params, peer).await?))
    }
}

/// Reads a form. One without a credential in the head may be as long as a login.
async fn read_form(state: &HttpState, of_head: Option<&Caller>, request: Request) -> Result<String, Refusal> {
    let (sender, limit) = match of_head {
        Some(caller) => (Sender::caller(caller), FORM_BYTES_MAX),
        None => (Sender::Anonymous, LOGIN_BODY_BYTES_MAX),
    };
    let body = read_body(request, limit, "", state.body_account(sender)).await?;
    let form = std::str::from_utf8(&body.bytes);
    let form = form.map_err(|_| Refusal::argument("the form is not UTF-8 text; send it urlencoded"))?;
    Ok(form.to_owned())
}

fn has_header(headers: &HeaderMap) -> bool {
    headers.contains_key("authorization") || headers.contains_key("x-authorization")
}

fn has_credential(headers: &HeaderMap, params: &Params) -> bool {
    has_header(headers) || ["access_token", "username", "u"].iter().any(|name| params.text(name).is_some())
}

async fn peer_of(parts: &mut Parts, state: &Arc<HttpState>) -> Option<SocketAddr> {
    match Peer::from_request_parts(parts, state).await {
        Ok(Peer(peer)) => peer,
        Err(never) => match never {},
    }
}

/// The caller of a request.
pub(super) async fn caller_of(
    state: &HttpState,
    headers: &HeaderMap,
    params: &Params,
    peer: Option<SocketAddr>,
) -> Result<Caller, Refusal> {
    if has_header(headers) {
        return Ok(series_caller(state, headers, params, peer).await?);
    }
    if let Some(token) = params.text("access_token") {
        return Ok(Session::open(state, token)?.into_caller());
    }
    if let Some(login) = params.text("username") {
        let password = params.text("password").unwrap_or_default();
        return Ok(caller_of_login(state, peer, login, password).await?);
    }
    Ok(series_caller(state, headers, params, peer).await?)
}
