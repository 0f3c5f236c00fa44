//! Entity views in ThingsBoard's shapes.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::caller::{Action, Caller};
use hub::registry::{EntityView, EntityViewFields};
use hub::{Entity, EntityKind, Hub};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use super::entities::{
    EntityIdJson, IdJson, Listing, add_customer, customer_id, entity_id, info_text, no_public_customer,
    page_answer, stored_json, types_answer,
};
use super::json::{Json, entity};
use super::relations::DeviceQueryJson;
use super::request::{JsonBody, Params, PathOf, parse_id};
use super::route_list::Routes;
use super::session::Session;
use super::state::HttpState;
use crate::error::ApiError;

/// The routes of entity views.
pub(super) fn routes() -> Routes {
    Routes::default()
        .get("/api/tenant/entityViews", list)
        .get("/api/tenant/entityViewInfos", list_infos)
        .get("/api/customer/{id}/entityViews", list_of_customer)
        .get("/api/customer/{id}/entityViewInfos", list_infos_of_customer)
        .post("/api/entityViews", find)
        .post("/api/entityView", save)
        .get("/api/entityView/types", types)
        .get("/api/entityView/info/{id}", info)
        .get("/api/entityView/{id}", show)
        .delete("/api/entityView/{id}", delete)
        .post("/api/customer/{customer}/entityView/{id}", assign)
        .post("/api/customer/public/entityView/{id}", no_public_customer)
        .delete("/api/customer/entityView/{id}", unassign)
}

type Answer = Result<Response, ApiError>;

fn view_json(view: &EntityView) -> JsonValue {
    json!({
        "id": entity("ENTITY_VIEW", view.id),
        "createdTime": view.created_at.millis(),
        "tenantId": entity("TENANT", view.tenant),
        "customerId": customer_id(view.customer),
        "entityId": entity_id(view.entity),
        "name": view.name,
        "type": view.kind,
        "keys": stored_json(view.keys.as_deref()),
        "startTimeMs": view.start_ms,
        "endTimeMs": view.end_ms,
        "additionalInfo": stored_json(view.additional_info.as_deref()),
        "version": view.version,
    })
}

/// ThingsBoard's `EntityViewInfo`.
fn info_json(hub: &Hub, caller: &Caller, view: &EntityView) -> JsonValue {
    let mut json = view_json(view);
    add_customer(&mut json, hub, caller, view.customer);
    json
}

/// `GET /api/tenant/entityViews?entityViewName=` for one, `?pageSize=&page=` for a page.
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    if let Some(name) = params.text("entityViewName") {
        return Ok(Json(view_json(&*state.hub.entity_view_by_name(session.caller(), name)?)).into_response());
    }
    page(&state, session, &params, None, false).await
}

/// `GET /api/tenant/entityViewInfos`
async fn list_infos(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    page(&state, session, &params, None, true).await
}

/// `GET /api/customer/{customerId}/entityViews`
async fn list_of_customer(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(customer): PathOf<String>,
    params: Params,
) -> Answer {
    let customer = state.hub.customer(session.caller(), parse_id(&customer)?)?.id;
    page(&state, session, &params, Some(customer), false).await
}

/// `GET /api/customer/{customerId}/entityViewInfos`
async fn list_infos_of_customer(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(customer): PathOf<String>,
    params: Params,
) -> Answer {
    let customer = state.hub.customer(session.caller(), parse_id(&customer)?)?.id;
    page(&state, session, &params, Some(customer), true).await
}

async fn page(
    state: &HttpState,
    session: Session,
    params: &Params,
    customer: Option<Uuid>,
    with_infos: bool,
) -> Answer {
    let listing = Listing::parse(params, EntityKind::EntityView)?;
    let type_name = params.text("type").map(str::to_owned);
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let wanted = |view: &EntityView| {
            customer.is_none_or(|customer| view.customer == Some(customer))
                && type_name.as_deref().is_none_or(|name| view.kind == name)
        };
        let found = hub.entity_views_page(session.caller(), listing.request(), wanted)?;
        Ok(page_answer(&found, |view| match with_infos {
            true => info_json(&hub, session.caller(), view),
            false => view_json(view),
        }))
    };
    state.reads.run(read).await?
}

/// `POST /api/entityViews`: entity views that relations lead to.
async fn find(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(query): JsonBody<DeviceQueryJson>,
) -> Answer {
    let (types, query) = query.parse()?;
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let found = hub.related_entities(session.caller(), &query, EntityKind::EntityView)?;
        let wanted = found.iter().filter_map(|entity| match entity {
            Entity::EntityView(view) if types.contains(&view.kind) => Some(view_json(view)),
            _ => None,
        });
        Ok(Json(wanted.collect::<Vec<_>>()).into_response())
    };
    state.reads.run(read).await?
}

/// `GET /api/entityView/types`
async fn types(State(state): State<Arc<HttpState>>, session: Session) -> Answer {
    let views = state.hub.visible_entities(session.caller(), EntityKind::EntityView)?;
    let names: BTreeSet<String> =
        views.iter().filter_map(|view| view.type_name().map(str::to_owned)).collect();
    Ok(types_answer(session.caller().tenant(), "ENTITY_VIEW", names.into_iter()))
}

/// `GET /api/entityView/{id}`
async fn show(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    Ok(Json(view_json(&*state.hub.entity_view(session.caller(), parse_id(&id)?)?)).into_response())
}

/// `GET /api/entityView/info/{id}`
async fn info(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    let view = state.hub.entity_view(session.caller(), parse_id(&id)?)?;
    Ok(Json(info_json(&state.hub, session.caller(), &view)).into_response())
}

/// `DELETE /api/entityView/{id}`
async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<(), ApiError> {
    let (hub, id) = (Arc::clone(&state.hub), parse_id(&id)?);
    state.changes.run(move || hub.delete_entity_view(session.caller(), id)).await??;
    Ok(())
}

/// `POST /api/customer/{customerId}/entityView/{entityViewId}`: assigns an entity view to a customer.
async fn assign(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((customer, id)): PathOf<(String, String)>,
) -> Answer {
    let (hub, customer, id) = (Arc::clone(&state.hub), parse_id(&customer)?, parse_id(&id)?);
    let assign = move || hub.assign_entity_view(session.caller(), id, Some(customer));
    Ok(Json(view_json(&*state.changes.run(assign).await??)).into_response())
}

/// `DELETE /api/customer/entityView/{entityViewId}`: ends the assignment of an entity view.
async fn unassign(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let (hub, id) = (Arc::clone(&state.hub), parse_id(&id)?);
    let unassign = move || {
        if hub.entity_view(session.caller(), id)?.customer.is_none() {
            return Err(ApiError::argument("the entity view is assigned to no customer"));
        }
        Ok(hub.assign_entity_view(session.caller(), id, None)?)
    };
    Ok(Json(view_json(&*state.changes.run(unassign).await??)).into_response())
}

/// An entity view in a request. It replaces what the view has.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ViewJson {
    id: Option<IdJson>,
    entity_id: EntityIdJson,
    name: String,
    #[serde(rename = "type")]
    kind: String,
    customer_id: Option<IdJson>,
    keys: Option<Box<RawValue>>,
    start_time_ms: Option<i64>,
    end_time_ms: Option<i64>,
    additional_info: Option<Box<RawValue>>,
    version: Option<i64>,
}

/// `POST /api/entityView`: adds an entity view, or changes it if the body has an `id`.
async fn save(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<ViewJson>,
) -> Answer {
    session.check(Action::ManageEntities)?;
    let (hub, entity) = (Arc::clone(&state.hub), new.entity_id.parse()?);
    let store = move || {
        let fields = EntityViewFields {
            entity,
            name: &new.name,
            kind: &new.kind,
            keys: info_text(new.keys.as_deref()),
            start_ms: new.start_time_ms.unwrap_or(0),
            end_ms: new.end_time_ms.unwrap_or(0),
            additional_info: info_text(new.additional_info.as_deref()),
            customer: new.customer_id.and_then(IdJson::customer),
        };
        match new.id {
            Some(IdJson { id }) => hub.change_entity_view(session.caller(), id, fields, new.version),
            None => hub.add_entity_view(session.caller(), fields),
        }
    };
    Ok(Json(view_json(&*state.changes.run(store).await??)).into_response())
}
