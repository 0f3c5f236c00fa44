//! Assets in ThingsBoard's shapes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::caller::{Action, Caller};
use hub::registry::{Asset, AssetFields, Page, PageRequest, RegistryError};
use hub::{Entity, EntityKind, Hub};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use super::assigned::{self, Assigned, Wanted};
use crate::error::ApiError;
use crate::http::shapes::entities::{
    IdJson, add_customer, customer_id, info_text, no_public_customer, stored_json,
};
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{JsonBody, Params, parse_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of assets.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get_compressed("/api/tenant/assets", list)
        .get_compressed("/api/tenant/assetInfos", assigned::list_infos::<Asset>)
        .get_compressed("/api/customer/{id}/assets", assigned::list_of_customer::<Asset>)
        .get_compressed("/api/customer/{id}/assetInfos", assigned::list_infos_of_customer::<Asset>)
        .get_compressed("/api/assets", assigned::list_of_ids::<Asset>)
        .post("/api/assets", assigned::find::<Asset>)
        .post("/api/asset", save)
        .get("/api/asset/types", assigned::types::<Asset>)
        .get("/api/asset/info/{id}", assigned::info::<Asset>)
        .get("/api/asset/{id}", assigned::show::<Asset>)
        .delete("/api/asset/{id}", assigned::delete::<Asset>)
        .post("/api/customer/{customer}/asset/{id}", assigned::assign::<Asset>)
        .post("/api/customer/public/asset/{id}", no_public_customer)
        .delete("/api/customer/asset/{id}", assigned::unassign::<Asset>)
}

fn asset_json(asset: &Asset) -> JsonValue {
    json!({
        "id": entity("ASSET", asset.id),
        "createdTime": asset.created_at.millis(),
        "tenantId": entity("TENANT", asset.tenant),
        "customerId": customer_id(asset.customer),
        "assetProfileId": entity("ASSET_PROFILE", asset.profile.id),
        "name": asset.name,
        "type": asset.profile.name,
        "label": asset.label,
        "additionalInfo": stored_json(asset.additional_info.as_deref()),
        "version": asset.version,
    })
}

impl Assigned for Asset {
    const KIND: EntityKind = EntityKind::Asset;
    const LIST: &'static str = "/api/tenant/assets";

    fn json(&self) -> JsonValue {
        asset_json(self)
    }

    fn info(&self, hub: &Hub, caller: &Caller) -> JsonValue {
        let mut json = asset_json(self);
        add_customer(&mut json, hub, caller, self.customer);
        json["assetProfileName"] = self.profile.name.as_str().into();
        json
    }

    fn customer(&self) -> Option<Uuid> {
        self.customer
    }

    fn of(entity: &Entity) -> Option<&Arc<Self>> {
        if let Entity::Asset(asset) = entity { Some(asset) } else { None }
    }

    fn wanted(params: &Params, _with_infos: bool) -> Result<Wanted<Self>, ApiError> {
        let profile = params.text("assetProfileId").map(parse_id).transpose()?;
        let type_name = params.text("type").map(str::to_owned);
        Ok(Box::new(move |_, _, asset| {
            profile.is_none_or(|profile| asset.profile.id == profile)
                && type_name.as_deref().is_none_or(|name| asset.profile.name == name)
        }))
    }

    fn find(hub: &Hub, caller: &Caller, id: Uuid) -> Result<Arc<Self>, RegistryError> {
        hub.asset(caller, id)
    }

    fn page(
        hub: &Hub,
        caller: &Caller,
        request: PageRequest<'_>,
        wanted: impl Fn(&Self) -> bool,
    ) -> Result<Page<Arc<Self>>, RegistryError> {
        hub.assets_page(caller, request, wanted)
    }

    fn assign(
        hub: &Hub,
        caller: &Caller,
        id: Uuid,
        customer: Option<Uuid>,
    ) -> Result<Arc<Self>, RegistryError> {
        hub.assign_asset(caller, id, customer)
    }

    fn delete(hub: &Hub, caller: &Caller, id: Uuid) -> Result<(), hub::Error> {
        hub.delete_asset(caller, id).map(drop)
    }
}

/// `GET /api/tenant/assets?assetName=` for one, `?pageSize=&page=` for a page.
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    if let Some(name) = params.text("assetName") {
        return Ok(Json(asset_json(&*state.hub.asset_by_name(session.caller(), name)?)).into_response());
    }
    assigned::page::<Asset>(&state, session, &params, None, false).await
}

/// An asset in a request. It replaces what the asset has.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AssetJson {
    id: Option<IdJson>,
    name: String,
    #[serde(rename = "type")]
    type_name: Option<String>,
    asset_profile_id: Option<IdJson>,
    customer_id: Option<IdJson>,
    label: Option<String>,
    additional_info: Option<Box<RawValue>>,
    version: Option<i64>,
}

impl AssetJson {
    /// Adds the asset, or changes the one with its id. It waits for the disk.
    fn store(&self, hub: &Hub, caller: &Caller) -> Result<Arc<Asset>, ApiError> {
        let named = self.type_name.as_deref().filter(|name| !name.is_empty());
        let profile = match (self.asset_profile_id, named) {
            (Some(IdJson { id }), _) => Some(id),
            // A type without a profile gets one, as in ThingsBoard.
            (None, Some(name)) => Some(hub.asset_profile_named(caller, name)?.id),
            (None, None) => None,
        };
        let fields = AssetFields {
            name: &self.name,
            profile,
            label: self.label.as_deref(),
            additional_info: info_text(self.additional_info.as_deref()),
            customer: self.customer_id.and_then(IdJson::customer),
        };
        Ok(match self.id {
            Some(IdJson { id }) => hub.change_asset(caller, id, fields, self.version)?,
            None => hub.add_asset(caller, fields)?,
        })
    }
}

/// `POST /api/asset`: adds an asset, or changes it if the body has an `id`.
async fn save(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<AssetJson>,
) -> Answer {
    session.check(Action::ManageEntities)?;
    let hub = Arc::clone(&state.hub);
    let store = move || new.store(&hub, session.caller());
    Ok(Json(asset_json(&*state.changes.run(store).await??)).into_response())
}
