//! Sessions: login, renewal, and what a request's token allows.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hub::Hub;
use hub::caller::{Action, Caller, Role};
use hub::clock::system_now;
use hub::registry::Device;
use hub::session_token::TokenPair;
use hub::sql::Reader;
use serde::Deserialize;
use uuid::Uuid;

use super::Door;
use super::bodies::{HeldBytes, Sender};
use super::error::{ApiError, ErrorCode};
use super::json::{Json, entity};
use super::request::JsonBody;
use super::server::Peer;
use crate::refusals;

/// A valid session: whoever has it may read what belongs to its tenant.
#[derive(Debug, Clone)]
pub(crate) struct Session(Caller);

impl Session {
    /// The session of `token`, if it is one.
    pub(crate) fn open(door: &Door, token: &str) -> Result<Self, ApiError> {
        let caller = door.hub.registry().check_session(token, system_now())?;
        if caller.role() == Role::Public && !door.options.public_read {
            // Issued while reading was public; it no longer is.
            return Err(no_public_reading());
        }
        Ok(Self(caller))
    }

    /// The session that a request's headers name.
    pub(crate) fn of(door: &Door, headers: &HeaderMap) -> Result<Self, ApiError> {
        Self::open(door, bearer(headers)?)
    }

    /// Where a body that comes with the session is counted.
    pub(crate) fn body_account(&self, door: &Door) -> HeldBytes {
        door.bodies.begin(Sender::User(self.0.user_id().unwrap_or_default()))
    }

    pub(crate) fn tenant(&self) -> Uuid {
        self.0.tenant()
    }

    /// Whose queries the session asks.
    pub(crate) fn reader(&self) -> Reader {
        self.0.clone().into()
    }

    /// Who asks.
    pub(crate) fn caller(&self) -> &Caller {
        &self.0
    }

    /// Refuses what the session's caller may not do.
    pub(crate) fn check(&self, action: Action) -> Result<(), ApiError> {
        Ok(self.0.check(action)?)
    }

    /// The device with that id, if it is one of the tenant. Another tenant's device is as unknown as none.
    pub(crate) fn device(&self, hub: &Hub, id: Uuid) -> Result<Arc<Device>, ApiError> {
        let device = hub.registry().device_by_id(id).filter(|device| device.tenant == self.tenant());
        device.ok_or_else(|| {
            ApiError::not_found(format!("there is no device {id}; GET /api/tenant/devices lists the devices"))
        })
    }
}

impl FromRequestParts<Arc<Door>> for Session {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, door: &Arc<Door>) -> Result<Self, ApiError> {
        Self::of(door, &parts.headers)
    }
}

/// The token of `X-Authorization: Bearer <token>` or `Authorization: Bearer <token>`.
fn bearer(headers: &HeaderMap) -> Result<&str, ApiError> {
    const HOW: &str =
        "send the header `X-Authorization: Bearer <token>`, the token from POST /api/auth/login";
    let header = headers.get("x-authorization").or_else(|| headers.get("authorization"));
    let Some(header) = header else {
        return Err(ApiError::unauthenticated("session", format!("this needs a session; {HOW}")));
    };
    let token = header.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let wrong = || ApiError::unauthenticated("session", format!("the header holds no session token; {HOW}"));
    token.ok_or_else(wrong)
}

fn no_public_reading() -> ApiError {
    let message = "reading without a login is off on this server; log in with POST /api/auth/login";
    ApiError::forbidden(message)
}

#[derive(Deserialize)]
pub(crate) struct Login {
    username: String,
    password: String,
}

/// `POST /api/auth/login`
pub(crate) async fn login(
    State(door): State<Arc<Door>>,
    Peer(peer): Peer,
    JsonBody(login): JsonBody<Login>,
) -> Result<Response, ApiError> {
    let hub = Arc::clone(&door.hub);
    let Login { username, password } = login;
    let name = username.clone();
    let attempt = hub.logins().begin(peer.map(|peer| peer.ip()), &name, Instant::now())?;
    let check = move || hub.registry().authenticate(&username, &password);
    let user = door.logins.run(check).await??;
    attempt.end(user.is_some(), Instant::now());
    let user = user.ok_or_else(|| {
        refusals::login(&door.hub, hub::Door::Http, peer, &name);
        ApiError::unauthenticated("password", "user name or password is wrong; check both and try again")
    })?;
    Ok(pair(&door.hub.registry().open_session(&user, system_now())))
}

/// `POST /api/auth/login/public`: a session that only reads, for anybody, where the operator allows it.
pub(crate) async fn login_public(State(door): State<Arc<Door>>) -> Result<Response, ApiError> {
    if !door.options.public_read {
        return Err(no_public_reading());
    }
    let registry = door.hub.registry();
    Ok(pair(&registry.open_public_session(registry.default_tenant(), system_now())))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Refresh {
    refresh_token: String,
}

/// `POST /api/auth/token`
pub(crate) async fn renew(
    State(door): State<Arc<Door>>,
    JsonBody(refresh): JsonBody<Refresh>,
) -> Result<Response, ApiError> {
    let renewed = door.hub.registry().renew_session(&refresh.refresh_token, system_now())?;
    // Looks at the session as every later request will.
    Session::open(&door, &renewed.token)?;
    Ok(pair(&renewed))
}

/// `GET /api/auth/user`
pub(crate) async fn user(State(door): State<Arc<Door>>, session: Session) -> Result<Response, ApiError> {
    let user = session.caller().user_id().and_then(|id| door.hub.registry().user_by_id(id));
    let user = user.ok_or_else(|| {
        let message = "a public session has no user; log in with POST /api/auth/login";
        ApiError::new(StatusCode::FORBIDDEN, ErrorCode::Permission, "permission", message)
    })?;
    let body = serde_json::json!({
        "id": entity("USER", user.id),
        "tenantId": entity("TENANT", user.tenant),
        "name": user.login,
        "email": user.login,
        "authority": user.authority.name(),
    });
    Ok(Json(body).into_response())
}

fn pair(pair: &TokenPair) -> Response {
    Json(serde_json::json!({ "token": pair.token, "refreshToken": pair.refresh_token })).into_response()
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
    }

    #[test]
    fn other_schemes_and_no_header_are_refused_with_the_way_in() {
        for headers in
            [HeaderMap::new(), headers("x-authorization", "ApiKey abc"), headers("authorization", "abc")]
        {
            let error = bearer(&headers).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code as u16), (401, 10));
            assert!(error.message.contains("/api/auth/login"), "{}", error.message);
        }
    }
}
