//! Queries of entities and of their alarms over REST, in ThingsBoard's shapes (`docs/protocol/entity-query.md`).

mod alarms;
mod json;

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::attributes::Scope;
use hub::entity_query::{EntityCountQuery, EntityDataQuery};
use serde_json::json;

pub(crate) use self::alarms::{AlarmCountQuery, AlarmDataPage, AlarmDataQuery};
use self::json::EntityPageJson;
pub(crate) use self::json::{EntityDataJson, Latest, no_entries};
use crate::error::ApiError;
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, Params};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of queries.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/entitiesQuery/find", find)
        .post("/api/entitiesQuery/count", count)
        .post("/api/entitiesQuery/find/keys", keys)
        .post("/api/alarmsQuery/find", alarms::find)
        .post("/api/alarmsQuery/count", alarms::count)
}

/// `POST /api/entitiesQuery/find`: a page of entities with their values.
async fn find(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(query): JsonBody<EntityDataQuery>,
) -> Result<Response, ApiError> {
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let found = hub.find_entities(session.caller(), &query)?;
        Ok(Json(EntityPageJson { found: &found }).into_response())
    };
    state.reads.run(read).await?
}

/// `POST /api/entitiesQuery/count`: the number of entities.
async fn count(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(query): JsonBody<EntityCountQuery>,
) -> Result<Response, ApiError> {
    let hub = Arc::clone(&state.hub);
    let count = state.reads.run(move || hub.count_entities(session.caller(), &query)).await??;
    Ok(Json(count).into_response())
}

/// `POST /api/entitiesQuery/find/keys?timeseries=&attributes=&scope=`: the keys that the entities of a query have.
async fn keys(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
    JsonBody(query): JsonBody<EntityDataQuery>,
) -> Result<Response, ApiError> {
    let (time_series, attributes) = (params.flag("timeseries")?, params.flag("attributes")?);
    let scopes = match params.text("scope") {
        None => Scope::ALL.to_vec(),
        Some(name) => vec![name.parse::<Scope>().map_err(ApiError::argument)?],
    };
    let hub = Arc::clone(&state.hub);
    let read =
        move || hub.keys_of_entities(session.caller(), &query, time_series, attributes.then_some(&scopes));
    let found = state.reads.run(read).await??;
    let kinds: Vec<&str> = found.kinds.iter().map(|kind| kind.name()).collect();
    let body = json!({
        "entityTypes": kinds,
        "timeseries": found.time_series.unwrap_or_default(),
        "attribute": found.attributes.unwrap_or_default(),
    });
    Ok(Json(body).into_response())
}
