//! Attributes of entities over REST. Paths, parameters and answers are ThingsBoard's.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hub::AttributeError;
use hub::attributes::Scope;
use hub::caller::Action;
use hub::device_messages::Attribute;
use hub::registry::Entity;
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use wire::thingsboard::attributes::{JsonValue, read_publish};

use super::entity::entity;
use super::read::unique_keys;
use crate::error::ApiError;
use crate::http::limits::REST_BODY_BYTES_MAX;
use crate::http::tools::json::{Json, Sequence};
use crate::http::tools::request::{Params, PathOf, read_body};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

type Path<T> = PathOf<T>;
type Answer = Result<Response, ApiError>;

/// The routes of this file.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/plugins/telemetry/{kind}/{id}/keys/attributes", keys)
        .get("/api/plugins/telemetry/{kind}/{id}/keys/attributes/{scope}", keys_in_scope)
        .get("/api/plugins/telemetry/{kind}/{id}/values/attributes", values)
        .get("/api/plugins/telemetry/{kind}/{id}/values/attributes/{scope}", values_in_scope)
        .post("/api/plugins/telemetry/{kind}/{id}/attributes/{scope}", set)
        .post("/api/plugins/telemetry/{kind}/{id}/{scope}", set)
        .delete("/api/plugins/telemetry/{kind}/{id}/{scope}", delete)
        .post("/api/plugins/telemetry/{id}/{scope}", set_of_device)
        .delete("/api/plugins/telemetry/{id}/{scope}", delete_of_device)
}

/// `POST /api/plugins/telemetry/{entityType}/{entityId}/attributes/{scope}` and without `attributes/`: sets shared or server
/// attributes. The answer comes when all of them are on the disk.
async fn set(
    state: State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id, scope)): Path<(String, String, String)>,
    request: Request,
) -> Result<(), ApiError> {
    write(&state, &session, (&kind, &id, &scope), request).await
}

/// `POST /api/plugins/telemetry/{deviceId}/{scope}`, the older path.
async fn set_of_device(
    state: State<Arc<HttpState>>,
    session: Session,
    PathOf((id, scope)): Path<(String, String)>,
    request: Request,
) -> Result<(), ApiError> {
    write(&state, &session, ("DEVICE", &id, &scope), request).await
}

async fn write(
    state: &HttpState,
    session: &Session,
    (kind, id, scope): (&str, &str, &str),
    request: Request,
) -> Result<(), ApiError> {
    let scope = parse_scope(scope)?;
    session.check(action_of(scope))?;
    let entity = entity(state, session, kind, id)?;
    let body = read_body(request, REST_BODY_BYTES_MAX, "", session.body_account(state)).await?;
    let read = read_publish(&body.bytes, state.hub.limits().json_depth_max);
    let entries = read.map_err(|wrong| ApiError::argument(wrong.to_string()))?;
    if entries.is_empty() {
        return Err(ApiError::argument("the body has no attributes; send {\"key\": value}"));
    }
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    Ok(state.attributes.run(move || hub.set_attributes(&caller, &entity, scope, &entries)).await??)
}

/// `DELETE /api/plugins/telemetry/{entityType}/{entityId}/{scope}?keys=`: deletes attributes.
async fn delete(
    state: State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id, scope)): Path<(String, String, String)>,
    params: Params,
) -> Result<(), ApiError> {
    remove(&state, &session, (&kind, &id, &scope), &params).await
}

/// `DELETE /api/plugins/telemetry/{deviceId}/{scope}?keys=`, the older path.
async fn delete_of_device(
    state: State<Arc<HttpState>>,
    session: Session,
    PathOf((id, scope)): Path<(String, String)>,
    params: Params,
) -> Result<(), ApiError> {
    remove(&state, &session, ("DEVICE", &id, &scope), &params).await
}

async fn remove(
    state: &HttpState,
    session: &Session,
    (kind, id, scope): (&str, &str, &str),
    params: &Params,
) -> Result<(), ApiError> {
    let scope = parse_scope(scope)?;
    session.check(action_of(scope))?;
    let entity = entity(state, session, kind, id)?;
    let keys = unique_keys(params.keys())?;
    if keys.is_empty() {
        let message = "name the attributes to delete in the parameter keys, separated by commas";
        return Err(ApiError::argument(message));
    }
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    Ok(state.attributes.run(move || hub.delete_attributes(&caller, &entity, scope, &keys)).await??)
}

/// `GET /api/plugins/telemetry/{entityType}/{entityId}/keys/attributes`: the keys of all scopes, each once.
async fn keys(
    state: State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id)): Path<(String, String)>,
) -> Answer {
    keys_of(&state, &session, entity(&state, &session, &kind, &id)?, &Scope::ALL).await
}

/// `GET .../keys/attributes/{scope}`: the keys of a scope.
async fn keys_in_scope(
    state: State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id, scope)): Path<(String, String, String)>,
) -> Answer {
    let scope = parse_scope(&scope)?;
    keys_of(&state, &session, entity(&state, &session, &kind, &id)?, &[scope]).await
}

async fn keys_of(state: &HttpState, session: &Session, entity: Entity, scopes: &[Scope]) -> Answer {
    let found = read(state, session, entity, scopes, None).await?;
    Ok(Json(found.iter().map(|attribute| &*attribute.key).collect::<BTreeSet<_>>()).into_response())
}

/// `GET .../values/attributes?keys=`: attributes of all scopes.
async fn values(
    state: State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id)): Path<(String, String)>,
    params: Params,
) -> Answer {
    values_of(&state, &session, entity(&state, &session, &kind, &id)?, &Scope::ALL, &params).await
}

/// `GET .../values/attributes/{scope}?keys=`: attributes of a scope.
async fn values_in_scope(
    state: State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id, scope)): Path<(String, String, String)>,
    params: Params,
) -> Answer {
    let scope = parse_scope(&scope)?;
    values_of(&state, &session, entity(&state, &session, &kind, &id)?, &[scope], &params).await
}

async fn values_of(
    state: &HttpState,
    session: &Session,
    entity: Entity,
    scopes: &[Scope],
    params: &Params,
) -> Answer {
    let keys = unique_keys(params.keys())?;
    let found = read(state, session, entity, scopes, (!keys.is_empty()).then_some(keys)).await?;
    Ok(Json(Sequence(|| found.iter().map(AttributeData))).into_response())
}

async fn read(
    state: &HttpState,
    session: &Session,
    entity: Entity,
    scopes: &[Scope],
    keys: Option<Vec<String>>,
) -> Result<Vec<Attribute>, ApiError> {
    let (hub, caller, scopes) = (Arc::clone(&state.hub), session.caller().clone(), scopes.to_vec());
    let read = move || {
        let mut found = Vec::new();
        for scope in scopes {
            found.extend(hub.attributes(&caller, &entity, scope, keys.as_deref())?);
        }
        Ok::<_, AttributeError>(found)
    };
    Ok(state.attributes.run(read).await??)
}

/// What a user needs to write attributes; the hub decides the same.
const fn action_of(scope: Scope) -> Action {
    match scope {
        Scope::Client | Scope::Server => Action::Write,
        Scope::Shared => Action::Command,
    }
}

fn parse_scope(name: &str) -> Result<Scope, ApiError> {
    name.parse().map_err(ApiError::argument)
}

/// ThingsBoard's `AttributeData`: `{"lastUpdateTs":ms,"key":k,"value":v}`.
struct AttributeData<'a>(&'a Attribute);

impl Serialize for AttributeData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Attribute { key, value, ts } = self.0;
        let mut data = serializer.serialize_struct("AttributeData", 3)?;
        data.serialize_field("lastUpdateTs", &ts.millis())?;
        data.serialize_field("key", &**key)?;
        data.serialize_field("value", &JsonValue(value.as_ref()))?;
        data.end()
    }
}
