//! Entity views in ThingsBoard's shapes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::caller::{Action, Caller};
use hub::registry::{EntityView, EntityViewFields, Page, PageRequest, RegistryError};
use hub::{Entity, EntityKind, Hub};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use super::assigned::{self, Assigned, Wanted};
use crate::error::ApiError;
use crate::http::shapes::entities::{
    EntityIdJson, IdJson, add_customer, customer_id, entity_id, info_text, no_public_customer, stored_json,
};
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{JsonBody, Params};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of entity views.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/tenant/entityViews", list)
        .get("/api/tenant/entityViewInfos", assigned::list_infos::<EntityView>)
        .get("/api/customer/{id}/entityViews", assigned::list_of_customer::<EntityView>)
        .get("/api/customer/{id}/entityViewInfos", assigned::list_infos_of_customer::<EntityView>)
        .post("/api/entityViews", assigned::find::<EntityView>)
        .post("/api/entityView", save)
        .get("/api/entityView/types", assigned::types::<EntityView>)
        .get("/api/entityView/info/{id}", assigned::info::<EntityView>)
        .get("/api/entityView/{id}", assigned::show::<EntityView>)
        .delete("/api/entityView/{id}", assigned::delete::<EntityView>)
        .post("/api/customer/{customer}/entityView/{id}", assigned::assign::<EntityView>)
        .post("/api/customer/public/entityView/{id}", no_public_customer)
        .delete("/api/customer/entityView/{id}", assigned::unassign::<EntityView>)
}

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

impl Assigned for EntityView {
    const KIND: EntityKind = EntityKind::EntityView;
    const LIST: &'static str = "/api/tenant/entityViews";

    fn json(&self) -> JsonValue {
        view_json(self)
    }

    fn info(&self, hub: &Hub, caller: &Caller) -> JsonValue {
        let mut json = view_json(self);
        add_customer(&mut json, hub, caller, self.customer);
        json
    }

    fn customer(&self) -> Option<Uuid> {
        self.customer
    }

    fn of(entity: &Entity) -> Option<&Arc<Self>> {
        if let Entity::EntityView(view) = entity { Some(view) } else { None }
    }

    fn wanted(params: &Params, _with_infos: bool) -> Result<Wanted<Self>, ApiError> {
        let type_name = params.text("type").map(str::to_owned);
        Ok(Box::new(move |_, _, view| type_name.as_deref().is_none_or(|name| view.kind == name)))
    }

    fn find(hub: &Hub, caller: &Caller, id: Uuid) -> Result<Arc<Self>, RegistryError> {
        hub.entity_view(caller, id)
    }

    fn page(
        hub: &Hub,
        caller: &Caller,
        request: PageRequest<'_>,
        wanted: impl Fn(&Self) -> bool,
    ) -> Result<Page<Arc<Self>>, RegistryError> {
        hub.entity_views_page(caller, request, wanted)
    }

    fn assign(
        hub: &Hub,
        caller: &Caller,
        id: Uuid,
        customer: Option<Uuid>,
    ) -> Result<Arc<Self>, RegistryError> {
        hub.assign_entity_view(caller, id, customer)
    }

    fn delete(hub: &Hub, caller: &Caller, id: Uuid) -> Result<(), hub::Error> {
        hub.delete_entity_view(caller, id).map(drop)
    }
}

/// `GET /api/tenant/entityViews?entityViewName=` for one, `?pageSize=&page=` for a page.
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    if let Some(name) = params.text("entityViewName") {
        return Ok(Json(view_json(&*state.hub.entity_view_by_name(session.caller(), name)?)).into_response());
    }
    assigned::page::<EntityView>(&state, session, &params, None, false).await
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
