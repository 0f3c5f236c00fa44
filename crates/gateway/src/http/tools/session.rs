//! Sessions of the REST interface: the caller of a request.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use hub::Hub;
use hub::caller::{Action, Caller, Role};
use hub::clock::system_now;
use hub::registry::{API_KEY_PREFIX, Device, RegistryError};
use hub::sql::Reader;
use uuid::Uuid;

use super::bodies::{HeldBytes, Sender};
use super::state::HttpState;
use crate::error::ApiError;

/// A valid session of a caller.
#[derive(Debug, Clone)]
pub(crate) struct Session(Caller);

impl Session {
    /// The session of a session token or an API key.
    pub(crate) fn open(state: &HttpState, token: &str) -> Result<Self, ApiError> {
        let (registry, now) = (state.hub.registry(), system_now());
        let caller = match token.starts_with(API_KEY_PREFIX) {
            true => registry.check_api_key(token, now)?,
            false => registry.check_session(token, now)?,
        };
        if caller.role() == Role::Public && !state.options.public_read {
            // The token was issued while public reading was on.
            return Err(no_public_reading());
        }
        Ok(Self(caller))
    }

    /// The session of the token in the headers of a request.
    pub(crate) fn of(state: &HttpState, headers: &HeaderMap) -> Result<Self, ApiError> {
        Self::open(state, bearer(headers)?)
    }

    /// The account for a body that comes with the session.
    pub(crate) fn body_account(&self, state: &HttpState) -> HeldBytes {
        state.body_account(Sender::caller(&self.0))
    }

    /// The reader for queries of the session.
    pub(crate) fn reader(&self) -> Reader {
        self.0.clone().into()
    }

    /// The caller of the session.
    pub(crate) fn caller(&self) -> &Caller {
        &self.0
    }

    /// The caller of the session.
    pub(crate) fn into_caller(self) -> Caller {
        self.0
    }

    /// Checks a permission of the caller.
    pub(crate) fn check(&self, action: Action) -> Result<(), ApiError> {
        Ok(self.0.check(action)?)
    }

    /// The device with an id. A device of another tenant is unknown.
    pub(crate) fn device(&self, hub: &Hub, id: Uuid) -> Result<Arc<Device>, ApiError> {
        hub.device(&self.0, id).map_err(|error| match error {
            RegistryError::Unknown { .. } => {
                let hint = "GET /api/tenant/devices lists the devices";
                ApiError::not_found(format!("there is no device {id}; {hint}"))
            }
            error => error.into(),
        })
    }
}

impl FromRequestParts<Arc<HttpState>> for Session {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<Self, ApiError> {
        Self::of(state, &parts.headers)
    }
}

/// The token of `X-Authorization: Bearer <token>` or the key of `X-Authorization: ApiKey <key>`; also in `Authorization`.
fn bearer(headers: &HeaderMap) -> Result<&str, ApiError> {
    const HOW: &str = "send the header `X-Authorization: Bearer <token>`, the token from POST /api/auth/login, \
                       or `X-Authorization: ApiKey <key>`";
    let header = headers.get("x-authorization").or_else(|| headers.get("authorization"));
    let Some(header) = header else {
        return Err(ApiError::unauthenticated("session", format!("this needs a session; {HOW}")));
    };
    let token = header.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        let token = token.trim();
        let is_key = scheme.eq_ignore_ascii_case("apikey") && token.starts_with(API_KEY_PREFIX);
        (is_key || scheme.eq_ignore_ascii_case("bearer")).then_some(token)
    });
    let wrong = || ApiError::unauthenticated("session", format!("the header holds no session token; {HOW}"));
    token.ok_or_else(wrong)
}

/// Public reading is off.
pub(crate) fn no_public_reading() -> ApiError {
    let message = "reading without a login is off on this server; log in with POST /api/auth/login";
    ApiError::forbidden(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn both_headers_carry_a_token() {
        assert_eq!(bearer(&headers("x-authorization", "Bearer abc")).unwrap(), "abc");
        assert_eq!(bearer(&headers("authorization", "bearer  abc")).unwrap(), "abc");
        assert_eq!(bearer(&headers("x-authorization", "ApiKey tacho_1")).unwrap(), "tacho_1");
    }

    #[test]
    fn other_schemes_and_no_header_are_refused_with_a_remedy() {
        for headers in
            [HeaderMap::new(), headers("x-authorization", "ApiKey abc"), headers("authorization", "abc")]
        {
            let error = bearer(&headers).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code as u16), (401, 10));
            assert!(error.message.contains("/api/auth/login"), "{}", error.message);
        }
    }
}
