//! Users in ThingsBoard's shapes. Their passwords, sessions and activation are in `auth` and `activation`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use hub::caller::{Caller, Role};
use hub::registry::{NewUser, User, UserFacts};
use hub::{EntityKind, Hub};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::shapes::entities::{IdJson, Listing, customer_id, info_text, page_answer, stored_json};
use crate::http::thingsboard::kind::{self, Delete, Find, Shown};
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{JsonBody, Params, PathOf, path_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of users.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/users", list)
        .get("/api/users/info", list_infos)
        .get("/api/tenant/{id}/users", list_of_tenant)
        .get("/api/customer/{id}/users", list_of_customer)
        .post("/api/user", save)
        .get("/api/user/tokenAccessEnabled", token_access)
        .get("/api/user/{id}", kind::show::<User>)
        .delete("/api/user/{id}", kind::delete::<User>)
        .get("/api/user/{id}/token", token)
        .get("/api/user/{id}/activationLink", activation_link)
        .get("/api/user/{id}/activationLinkInfo", activation_link_info)
        .post("/api/user/sendActivationMail", no_mail)
        .post("/api/user/{id}/userCredentialsEnabled", set_enabled)
}

impl Shown for User {
    const FIND: Find<Self> = Hub::user;
    /// Ends the user's sessions.
    const DELETE: Delete<Self> = Hub::delete_user_by_id;

    fn json(&self, _caller: &Caller) -> JsonValue {
        user_json(self)
    }
}

pub(crate) fn user_json(user: &User) -> JsonValue {
    json!({
        "id": entity("USER", user.id),
        "createdTime": user.created_at.millis(),
        "tenantId": entity("TENANT", user.tenant),
        "customerId": customer_id(user.customer),
        "email": user.login,
        "name": user.login,
        "authority": user.authority(),
        "firstName": user.first_name,
        "lastName": user.last_name,
        "phone": user.phone,
        "additionalInfo": stored_json(user.additional_info.as_deref()),
        "version": user.version,
    })
}

/// ThingsBoard's `UserEmailInfo`.
fn email_info_json(user: &User) -> JsonValue {
    json!({
        "id": entity("USER", user.id),
        "email": user.login,
        "firstName": user.first_name,
        "lastName": user.last_name,
    })
}

/// `GET /api/users`: the users that the caller sees.
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let tenant = session.caller().tenant();
    page(&state, session, &params, tenant, |_| true, user_json).await
}

/// `GET /api/users/info`
async fn list_infos(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let tenant = session.caller().tenant();
    page(&state, session, &params, tenant, |_| true, email_info_json).await
}

/// `GET /api/tenant/{tenantId}/users`: the administrators of a tenant.
async fn list_of_tenant(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(tenant): PathOf<String>,
    params: Params,
) -> Answer {
    let tenant = path_id(&tenant)?;
    page(&state, session, &params, tenant, |user| user.role == Role::Administrator, user_json).await
}

/// `GET /api/customer/{customerId}/users`
async fn list_of_customer(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(customer): PathOf<String>,
    params: Params,
) -> Answer {
    let customer = state.hub.customer(session.caller(), path_id(&customer)?)?.id;
    let tenant = session.caller().tenant();
    page(&state, session, &params, tenant, move |user| user.customer == Some(customer), user_json).await
}

async fn page(
    state: &HttpState,
    session: Session,
    params: &Params,
    tenant: Uuid,
    wanted: impl Fn(&User) -> bool + Send + 'static,
    json: impl Fn(&User) -> JsonValue + Send + 'static,
) -> Answer {
    let listing = Listing::parse(params, EntityKind::User)?;
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let found = hub.users_page(session.caller(), tenant, listing.request(), wanted)?;
        Ok(page_answer(&found, |user| json(user)))
    };
    state.reads.run(read).await?
}

/// `GET /api/user/tokenAccessEnabled`
async fn token_access(_: Session) -> Answer {
    Ok(Json(false).into_response())
}

/// `GET /api/user/{id}/token`: refused. A session of another user would act in that user's name, also in the audit table.
async fn token(_: Session, PathOf(_): PathOf<String>) -> ApiError {
    ApiError::forbidden(
        "nobody gets a session of another user; add an API key of that user (POST /api/tacho/api-keys) instead",
    )
}

/// `POST /api/user/sendActivationMail`: refused.
async fn no_mail(_: Session) -> ApiError {
    mail_error()
}

fn mail_error() -> ApiError {
    ApiError::argument(
        "this server sends no mail; add the user with sendActivationMail=false and pass on GET /api/user/{id}/activationLink",
    )
}

/// `POST /api/user/{id}/userCredentialsEnabled?userCredentialsEnabled=`: a disabled user has no session and cannot log in.
async fn set_enabled(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
    params: Params,
) -> Result<(), ApiError> {
    // ThingsBoard's default is true.
    let absent = params.text("userCredentialsEnabled").is_none();
    let enabled = absent || params.flag("userCredentialsEnabled")?;
    let (hub, id) = (Arc::clone(&state.hub), path_id(&id)?);
    state.changes.run(move || hub.set_user_enabled(session.caller(), id, enabled)).await??;
    Ok(())
}

/// `GET /api/user/{id}/activationLink`: the link as text, as in ThingsBoard.
async fn activation_link(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
) -> Answer {
    let (hub, id) = (Arc::clone(&state.hub), path_id(&id)?);
    let activation = state.changes.run(move || hub.user_activation(session.caller(), id)).await??;
    Ok(link(&headers, &activation.token).into_response())
}

/// `GET /api/user/{id}/activationLinkInfo`: the link, and for how many milliseconds it is valid.
async fn activation_link_info(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
) -> Answer {
    let (hub, id) = (Arc::clone(&state.hub), path_id(&id)?);
    let activation = state.changes.run(move || hub.user_activation(session.caller(), id)).await??;
    let left_ms = activation.expires_at.millis() - hub::clock::system_now().millis();
    let value = link(&headers, &activation.token);
    Ok(Json(json!({ "value": value, "ttlMs": left_ms.max(0) })).into_response())
}

/// A user in a request. It replaces what the user has.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UserJson {
    id: Option<IdJson>,
    tenant_id: Option<IdJson>,
    customer_id: Option<IdJson>,
    email: String,
    authority: String,
    first_name: Option<String>,
    last_name: Option<String>,
    phone: Option<String>,
    additional_info: Option<Box<RawValue>>,
    version: Option<i64>,
}

impl UserJson {
    /// The role of the authority. A user without a customer whose authority is `CUSTOMER_USER` keeps the role viewer or operator,
    /// and is a viewer when it is new.
    fn role(&self, old: Option<&User>) -> Result<Role, ApiError> {
        let customer = self.customer_id.and_then(IdJson::customer);
        match (self.authority.as_str(), customer) {
            ("TENANT_ADMIN", None) => Ok(Role::Administrator),
            ("TENANT_ADMIN", Some(_)) => {
                Err(ApiError::argument("a user with a customer has the authority CUSTOMER_USER"))
            }
            ("CUSTOMER_USER", Some(_)) => Ok(Role::Customer),
            ("CUSTOMER_USER", None) => Ok(match old.map(|old| old.role) {
                Some(role @ (Role::Viewer | Role::Operator)) => role,
                _ => Role::Viewer,
            }),
            (other, _) => Err(ApiError::argument(format!(
                "authority is {other:?}; it must be TENANT_ADMIN or CUSTOMER_USER: administrators of the default tenant look after the installation"
            ))),
        }
    }

    /// Adds the user, or changes the one with its id. It waits for the disk.
    fn store(&self, hub: &Hub, caller: &Caller) -> Result<Arc<User>, ApiError> {
        let old = self.id.map(|id| hub.user(caller, id.id)).transpose()?;
        let new = NewUser {
            login: &self.email,
            password: None,
            role: self.role(old.as_deref())?,
            customer: self.customer_id.and_then(IdJson::customer),
            facts: UserFacts {
                first_name: self.first_name.as_deref(),
                last_name: self.last_name.as_deref(),
                phone: self.phone.as_deref(),
                additional_info: info_text(self.additional_info.as_deref()),
            },
        };
        let tenant = self.tenant_id.map_or(caller.tenant(), |tenant| tenant.id);
        match old {
            Some(old) if self.tenant_id.is_some() && tenant != old.tenant => {
                Err(ApiError::argument("a user stays in its tenant; leave tenantId as it is"))
            }
            Some(old) => Ok(hub.change_user(caller, old.id, new, self.version)?),
            None => Ok(hub.create_user(caller, tenant, new)?),
        }
    }
}

/// `POST /api/user?sendActivationMail=`: adds a user without a password, who gets one with the activation link; or changes the user
/// with the `id` of the body. This server sends no mail: `sendActivationMail=true` is refused.
async fn save(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
    JsonBody(new): JsonBody<UserJson>,
) -> Answer {
    if params.flag("sendActivationMail")? {
        return Err(mail_error());
    }
    let hub = Arc::clone(&state.hub);
    let store = move || new.store(&hub, session.caller());
    Ok(Json(user_json(&*state.changes.run(store).await??)).into_response())
}

/// The link with a token, under the address that the client used.
fn link(headers: &HeaderMap, token: &str) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    // A load balancer that ends TLS says so.
    let scheme = match text("x-forwarded-proto") {
        Some("https") => "https",
        _ => "http",
    };
    let host = text(header::HOST.as_str()).unwrap_or("localhost");
    format!("{scheme}://{host}/api/noauth/activate?activateToken={token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_the_address_that_the_client_used() {
        let mut headers = HeaderMap::new();
        assert_eq!(link(&headers, "t"), "http://localhost/api/noauth/activate?activateToken=t");
        headers.insert("host", "fleet.example:8443".parse().unwrap());
        headers.insert("x-forwarded-proto", "https".parse().unwrap());
        assert_eq!(link(&headers, "t"), "https://fleet.example:8443/api/noauth/activate?activateToken=t");
    }
}
