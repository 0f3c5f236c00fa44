//! Entity views in ThingsBoard's shapes.

use std::sync::Arc;

use hub::Hub;
use hub::caller::Caller;
use hub::registry::{EntityView, EntityViewFields};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use super::assigned::{self, Assign, Assigned, Wanted};
use super::kind::{self, Delete, Find, Saved, Shown};
use crate::error::ApiError;
use crate::http::shapes::entities::{
    EntityIdJson, IdJson, add_customer, customer_id, entity_id, info_text, no_public_customer, stored_json,
};
use crate::http::tools::json::entity;
use crate::http::tools::request::Params;
use crate::http::tools::route_list::Routes;

/// The routes of entity views.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/tenant/entityViews", assigned::list::<EntityView>)
        .get("/api/tenant/entityViewInfos", assigned::list_infos::<EntityView>)
        .get("/api/customer/{id}/entityViews", assigned::list_of_customer::<EntityView>)
        .get("/api/customer/{id}/entityViewInfos", assigned::list_infos_of_customer::<EntityView>)
        .post("/api/entityViews", assigned::find::<EntityView>)
        .post("/api/entityView", kind::save::<ViewJson>)
        .get("/api/entityView/types", assigned::types::<EntityView>)
        .get("/api/entityView/info/{id}", assigned::info::<EntityView>)
        .get("/api/entityView/{id}", assigned::show::<EntityView>)
        .delete("/api/entityView/{id}", kind::delete::<EntityView>)
        .post("/api/customer/{customer}/entityView/{id}", assigned::assign::<EntityView>)
        .post("/api/customer/public/entityView/{id}", no_public_customer)
        .delete("/api/customer/entityView/{id}", assigned::unassign::<EntityView>)
}

impl Shown for EntityView {
    const FIND: Find<Self> = Hub::entity_view;
    const DELETE: Delete<Self> = Hub::delete_entity_view;

    fn json(&self, _caller: &Caller) -> JsonValue {
        json!({
            "id": entity("ENTITY_VIEW", self.id),
            "createdTime": self.created_at.millis(),
            "tenantId": entity("TENANT", self.tenant),
            "customerId": customer_id(self.customer),
            "entityId": entity_id(self.entity),
            "name": self.name,
            "type": self.kind,
            "keys": stored_json(self.keys.as_deref()),
            "startTimeMs": self.start_ms,
            "endTimeMs": self.end_ms,
            "additionalInfo": stored_json(self.additional_info.as_deref()),
            "version": self.version,
        })
    }
}

impl Assigned for EntityView {
    const LIST: &'static str = "/api/tenant/entityViews";
    const NAME: &'static str = "entityViewName";
    const ASSIGN: Assign<Self> = Hub::assign_entity_view;

    fn info(&self, hub: &Hub, caller: &Caller) -> JsonValue {
        let mut json = self.json(caller);
        add_customer(&mut json, hub, caller, self.customer);
        json
    }

    fn wanted(params: &Params, _with_infos: bool) -> Result<Wanted<Self>, ApiError> {
        let type_name = params.text("type").map(str::to_owned);
        Ok(Box::new(move |_, _, view| type_name.as_deref().is_none_or(|name| view.kind == name)))
    }
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

impl Saved for ViewJson {
    type Kind = EntityView;

    fn check(&self) -> Result<(), ApiError> {
        self.entity_id.parse().map(drop)
    }

    fn store(self, hub: &Hub, caller: &Caller) -> Result<Arc<EntityView>, ApiError> {
        let fields = EntityViewFields {
            entity: self.entity_id.parse()?,
            name: &self.name,
            kind: &self.kind,
            keys: info_text(self.keys.as_deref()),
            start_ms: self.start_time_ms.unwrap_or(0),
            end_ms: self.end_time_ms.unwrap_or(0),
            additional_info: info_text(self.additional_info.as_deref()),
            customer: self.customer_id.and_then(IdJson::customer),
        };
        Ok(match self.id {
            Some(IdJson { id }) => hub.change_entity_view(caller, id, fields, self.version)?,
            None => hub.add_entity_view(caller, fields)?,
        })
    }
}
