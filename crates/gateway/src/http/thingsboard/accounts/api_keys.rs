//! API keys in the shapes of ThingsBoard 4.3. A key is always enabled, and keeps its description.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::registry::{ApiKey, NewApiKey, Page, SortProperty, User};
use model::Timestamp;
use serde::Deserialize;
use serde_json::{Value as JsonValue, json};

use crate::error::ApiError;
use crate::http::shapes::entities::{IdJson, Listing, page_answer};
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{JsonBody, Params, PathOf, path_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of API keys.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/apiKey", add)
        .get("/api/apiKeys/{user}", list)
        .delete("/api/apiKey/{id}", delete)
        .put("/api/apiKey/{id}/enabled/{enabled}", set_enabled)
}

type Answer = Result<Response, ApiError>;

/// ThingsBoard's `ApiKeyInfo`. An expiration of 0 means none.
fn key_json(user: &User, key: &ApiKey) -> JsonValue {
    json!({
        "id": entity("API_KEY", key.id),
        "createdTime": key.created_at.millis(),
        "tenantId": entity("TENANT", user.tenant),
        "userId": entity("USER", user.id),
        "description": key.name,
        "enabled": true,
        "expirationTime": key.expires_at.map_or(0, Timestamp::millis),
        "expired": key.expires_at.is_some_and(|end| end <= hub::clock::system_now()),
    })
}

/// A key in a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyJson {
    id: Option<IdJson>,
    user_id: IdJson,
    description: String,
    expiration_time: Option<i64>,
}

/// `POST /api/apiKey`: adds a key with the role of its user. The answer has the key itself in `value`. It cannot be read later.
async fn add(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<KeyJson>,
) -> Answer {
    if new.id.is_some() {
        return Err(ApiError::argument("a key is not changed; delete it and add another one"));
    }
    let wrong = || ApiError::argument("expirationTime is not a time in milliseconds");
    let expires_at = match new.expiration_time.filter(|millis| *millis != 0) {
        Some(millis) => Some(Timestamp::from_millis(millis).ok_or_else(wrong)?),
        None => None,
    };
    let hub = Arc::clone(&state.hub);
    let add = move || {
        let user = hub.user(session.caller(), new.user_id.id)?;
        // Not more than the caller may give away.
        let role = match session.caller().role().includes(user.role) {
            true => user.role,
            false => session.caller().role(),
        };
        let key = NewApiKey { login: &user.login, name: &new.description, role, expires_at };
        let (key, secret) = hub.add_api_key(session.caller(), key)?;
        let mut answer = key_json(&user, &key);
        answer["value"] = secret.into();
        Ok(Json(answer).into_response())
    };
    state.changes.run(add).await?
}

/// `GET /api/apiKeys/{userId}`: a page of the keys of a user, sorted by description.
async fn list(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(user): PathOf<String>,
    params: Params,
) -> Answer {
    let id = path_id(&user)?;
    let listing = Listing::parse_sorted(&params, |name| match name {
        "createdTime" => Ok(SortProperty::CreatedTime),
        "description" => Ok(SortProperty::Name),
        other => Err(format!("sortProperty is {other:?}; keys are sorted by createdTime or description")),
    })?;
    let request = listing.request();
    let mut keys = state.hub.api_keys_of(session.caller(), id)?;
    if let Some(text) = request.filter.map(str::to_lowercase) {
        keys.retain(|key| key.name.to_lowercase().contains(&text));
    }
    if request.sort == SortProperty::CreatedTime {
        keys.sort_by_key(|key| (key.created_at, key.id));
    }
    if request.descending {
        keys.reverse();
    }
    let user = state.hub.user(session.caller(), id)?;
    let page = Page::of(keys.into_iter(), request.page, request.page_size);
    Ok(page_answer(&page, |key| key_json(&user, key)))
}

/// `DELETE /api/apiKey/{id}`: ends the key's sessions.
async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<(), ApiError> {
    let (hub, id) = (Arc::clone(&state.hub), path_id(&id)?);
    state.changes.run(move || hub.delete_api_key(session.caller(), id)).await??;
    Ok(())
}

/// `PUT /api/apiKey/{id}/enabled/{enabled}`: refused. A key is enabled until it is deleted.
async fn set_enabled(_: Session, PathOf(_): PathOf<(String, String)>) -> ApiError {
    ApiError::argument("a key is enabled until it is deleted; DELETE /api/apiKey/{id} ends its sessions")
}
