//! Relations between entities in ThingsBoard's shapes.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub::caller::{Action, Caller};
use hub::registry::{Relation, RelationKey};
use hub::relations::{RelationDirection, RelationFilter, RelationQuery};
use hub::{EntityId, Hub};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::shapes::entities::{EntityIdJson, entity_id, entity_in, info_text, stored_json};
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, Params};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of relations.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/relation", save)
        .get("/api/relation", show)
        .delete("/api/relation", delete)
        // ThingsBoard's newer paths, which answer with the relation.
        .post("/api/v2/relation", save_and_show)
        .delete("/api/v2/relation", delete_and_show)
        .get("/api/relations", list)
        .get("/api/relations/info", list_infos)
        .post("/api/relations", find)
        .post("/api/relations/info", find_infos)
        .delete("/api/relations", delete_all)
}

type Answer = Result<Response, ApiError>;

/// The group of the relations that clients make.
const COMMON: &str = "COMMON";

fn relation_json(relation: &Relation) -> JsonValue {
    json!({
        "from": entity_id(relation.key.from),
        "to": entity_id(relation.key.to),
        "type": relation.key.kind,
        "typeGroup": relation.key.type_group,
        "additionalInfo": stored_json(relation.additional_info.as_deref()),
        "version": relation.version,
    })
}

/// ThingsBoard's `EntityRelationInfo`: the relation with the names of its entities.
fn info_json(hub: &Hub, caller: &Caller, relation: &Relation) -> JsonValue {
    let name = |id: EntityId| hub.visible_entity(caller, id).ok().map(|entity| entity.name().to_owned());
    let mut json = relation_json(relation);
    json["fromName"] = name(relation.key.from).into();
    json["toName"] = name(relation.key.to).into();
    json
}

/// A relation in a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RelationJson {
    from: EntityIdJson,
    to: EntityIdJson,
    #[serde(rename = "type")]
    kind: String,
    type_group: Option<String>,
    additional_info: Option<Box<RawValue>>,
}

impl RelationJson {
    fn key(&self) -> Result<RelationKey, ApiError> {
        Ok(RelationKey {
            from: self.from.parse()?,
            type_group: self.type_group.as_deref().unwrap_or(COMMON).into(),
            kind: self.kind.as_str().into(),
            to: self.to.parse()?,
        })
    }
}

/// `POST /api/relation`: adds a relation, or replaces its `additionalInfo`.
async fn save(
    state: State<Arc<HttpState>>,
    session: Session,
    body: JsonBody<RelationJson>,
) -> Result<StatusCode, ApiError> {
    store(&state, session, body).await.map(|_| StatusCode::OK)
}

/// `POST /api/v2/relation`: the same, and answers with the relation.
async fn save_and_show(
    state: State<Arc<HttpState>>,
    session: Session,
    body: JsonBody<RelationJson>,
) -> Answer {
    Ok(Json(relation_json(&*store(&state, session, body).await?)).into_response())
}

async fn store(
    state: &HttpState,
    session: Session,
    JsonBody(new): JsonBody<RelationJson>,
) -> Result<Arc<Relation>, ApiError> {
    session.check(Action::ManageEntities)?;
    let (hub, key) = (Arc::clone(&state.hub), new.key()?);
    let save = move || hub.save_relation(session.caller(), key, info_text(new.additional_info.as_deref()));
    Ok(state.changes.run(save).await??)
}

/// The relation that parameters name.
fn key_in(params: &Params) -> Result<RelationKey, ApiError> {
    let missing = || ApiError::argument("name fromType, fromId, relationType, toType and toId");
    Ok(RelationKey {
        from: entity_in(params, "fromType", "fromId")?.ok_or_else(missing)?,
        type_group: params.text("relationTypeGroup").unwrap_or(COMMON).into(),
        kind: params.text("relationType").ok_or_else(missing)?.into(),
        to: entity_in(params, "toType", "toId")?.ok_or_else(missing)?,
    })
}

/// `GET /api/relation`
async fn show(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let relation = state.hub.relation(session.caller(), &key_in(&params)?)?;
    Ok(Json(relation_json(&relation)).into_response())
}

/// `DELETE /api/relation`
async fn delete(
    state: State<Arc<HttpState>>,
    session: Session,
    params: Params,
) -> Result<StatusCode, ApiError> {
    remove(&state, session, &params).await.map(|_| StatusCode::OK)
}

/// `DELETE /api/v2/relation`: the same, and answers with the relation.
async fn delete_and_show(state: State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    Ok(Json(relation_json(&*remove(&state, session, &params).await?)).into_response())
}

async fn remove(state: &HttpState, session: Session, params: &Params) -> Result<Arc<Relation>, ApiError> {
    let (hub, key) = (Arc::clone(&state.hub), key_in(params)?);
    Ok(state.changes.run(move || hub.delete_relation(session.caller(), &key)).await??)
}

/// `DELETE /api/relations?entityId=&entityType=`: all relations of an entity.
async fn delete_all(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
) -> Result<StatusCode, ApiError> {
    let entity = entity_in(&params, "entityType", "entityId")?;
    let entity = entity.ok_or_else(|| ApiError::argument("name entityType and entityId"))?;
    let hub = Arc::clone(&state.hub);
    state.changes.run(move || hub.delete_relations(session.caller(), entity)).await??;
    Ok(StatusCode::OK)
}

/// `GET /api/relations` with `fromType` and `fromId`, or `toType` and `toId`
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let found = found(&state.hub, &session, &params)?;
    let found: Vec<_> = found.iter().map(|relation| relation_json(relation)).collect();
    Ok(Json(found).into_response())
}

/// `GET /api/relations/info`
async fn list_infos(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let found = found(&state.hub, &session, &params)?;
    let json = |relation: &Arc<Relation>| info_json(&state.hub, session.caller(), relation);
    Ok(Json(found.iter().map(json).collect::<Vec<_>>()).into_response())
}

fn found(hub: &Hub, session: &Session, params: &Params) -> Result<Vec<Arc<Relation>>, ApiError> {
    let (from, to) = (entity_in(params, "fromType", "fromId")?, entity_in(params, "toType", "toId")?);
    let (entity, direction) = match (from, to) {
        (Some(from), None) => (from, RelationDirection::From),
        (None, Some(to)) => (to, RelationDirection::To),
        _ => return Err(ApiError::argument("name fromType and fromId, or toType and toId")),
    };
    let group = params.text("relationTypeGroup").unwrap_or(COMMON);
    let kind = params.text("relationType");
    let mut found = hub.relations_of(session.caller(), entity, direction)?;
    found.retain(|relation| {
        *relation.key.type_group == *group && kind.is_none_or(|kind| *relation.key.kind == *kind)
    });
    Ok(found)
}

/// ThingsBoard's `EntityRelationsQuery`.
#[derive(Debug, Deserialize)]
pub(crate) struct RelationsQueryJson {
    parameters: ParametersJson,
    #[serde(default)]
    filters: Option<Vec<FilterJson>>,
}

/// ThingsBoard's `RelationsSearchParameters`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ParametersJson {
    root_id: Uuid,
    root_type: String,
    direction: Option<String>,
    relation_type_group: Option<String>,
    max_level: Option<i64>,
    #[serde(default)]
    fetch_last_level_only: Option<bool>,
}

/// ThingsBoard's `RelationEntityTypeFilter`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FilterJson {
    relation_type: Option<String>,
    entity_types: Option<Vec<String>>,
    #[serde(default)]
    negate: Option<bool>,
}

impl ParametersJson {
    fn query(&self, filters: Vec<RelationFilter>) -> Result<RelationQuery, ApiError> {
        let direction = match self.direction.as_deref() {
            None | Some("FROM") => RelationDirection::From,
            Some("TO") => RelationDirection::To,
            Some(other) => {
                return Err(ApiError::argument(format!("direction is {other:?}; it must be FROM or TO")));
            }
        };
        Ok(RelationQuery {
            root: EntityId { kind: self.root_type.parse().map_err(ApiError::argument)?, id: self.root_id },
            direction,
            type_group: self.relation_type_group.clone().unwrap_or_else(|| COMMON.to_owned()),
            level_max: self.max_level.and_then(|level| usize::try_from(level).ok()).unwrap_or(0),
            last_level_only: self.fetch_last_level_only.unwrap_or(false),
            filters,
        })
    }
}

impl RelationsQueryJson {
    fn parse(&self) -> Result<RelationQuery, ApiError> {
        let filter = |filter: &FilterJson| {
            let kinds = filter.entity_types.iter().flatten().map(|name| name.parse());
            Ok(RelationFilter {
                kind: filter.relation_type.clone().filter(|kind| !kind.is_empty()),
                entity_kinds: kinds.collect::<Result<_, String>>().map_err(ApiError::argument)?,
                negated: filter.negate.unwrap_or(false),
            })
        };
        let filters = self.filters.iter().flatten().map(filter).collect::<Result<_, ApiError>>()?;
        self.parameters.query(filters)
    }
}

/// `POST /api/relations`: the relations that lead away from an entity.
async fn find(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(query): JsonBody<RelationsQueryJson>,
) -> Answer {
    let (hub, query) = (Arc::clone(&state.hub), query.parse()?);
    let found = state.reads.run(move || hub.related(session.caller(), &query)).await??;
    let found: Vec<_> = found.iter().map(|relation| relation_json(relation)).collect();
    Ok(Json(found).into_response())
}

/// `POST /api/relations/info`
async fn find_infos(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(query): JsonBody<RelationsQueryJson>,
) -> Answer {
    let (hub, query) = (Arc::clone(&state.hub), query.parse()?);
    let read = move || {
        let found = hub.related(session.caller(), &query)?;
        let json = |relation: &Arc<Relation>| info_json(&hub, session.caller(), relation);
        Ok(Json(found.iter().map(json).collect::<Vec<_>>()).into_response())
    };
    state.reads.run(read).await?
}

/// ThingsBoard's `DeviceSearchQuery`; the queries for assets and entity views have the same shape.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceQueryJson {
    parameters: ParametersJson,
    relation_type: Option<String>,
    #[serde(alias = "assetTypes", alias = "entityViewTypes")]
    device_types: Vec<String>,
}

impl DeviceQueryJson {
    /// The types of the wanted entities, and the relations to follow.
    pub(crate) fn parse(self) -> Result<(Vec<String>, RelationQuery), ApiError> {
        let kind = self.relation_type.filter(|kind| !kind.is_empty());
        let filter = RelationFilter { kind, entity_kinds: Vec::new(), negated: false };
        Ok((self.device_types, self.parameters.query(vec![filter])?))
    }
}
