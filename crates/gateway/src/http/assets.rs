//! Assets in ThingsBoard's shapes.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::caller::{Action, Caller};
use hub::registry::{Asset, AssetFields};
use hub::{Entity, EntityKind, Hub};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use super::entities::{
    IdJson, Listing, add_customer, customer_id, ids, info_text, no_public_customer, page_answer, stored_json,
    types_answer,
};
use super::json::{Json, entity};
use super::relations::DeviceQueryJson;
use super::request::{JsonBody, Params, PathOf, parse_id};
use super::route_list::Routes;
use super::session::Session;
use super::state::HttpState;
use crate::error::ApiError;

/// The routes of assets.
pub(super) fn routes() -> Routes {
    Routes::default()
        .get_compressed("/api/tenant/assets", list)
        .get_compressed("/api/tenant/assetInfos", list_infos)
        .get_compressed("/api/customer/{id}/assets", list_of_customer)
        .get_compressed("/api/customer/{id}/assetInfos", list_infos_of_customer)
        .get_compressed("/api/assets", list_of_ids)
        .post("/api/assets", find)
        .post("/api/asset", save)
        .get("/api/asset/types", types)
        .get("/api/asset/info/{id}", info)
        .get("/api/asset/{id}", show)
        .delete("/api/asset/{id}", delete)
        .post("/api/customer/{customer}/asset/{id}", assign)
        .post("/api/customer/public/asset/{id}", no_public_customer)
        .delete("/api/customer/asset/{id}", unassign)
}

type Answer = Result<Response, ApiError>;

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

/// ThingsBoard's `AssetInfo`.
fn info_json(hub: &Hub, caller: &Caller, asset: &Asset) -> JsonValue {
    let mut json = asset_json(asset);
    add_customer(&mut json, hub, caller, asset.customer);
    json["assetProfileName"] = asset.profile.name.as_str().into();
    json
}

/// `GET /api/tenant/assets?assetName=` for one, `?pageSize=&page=` for a page.
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    if let Some(name) = params.text("assetName") {
        return Ok(Json(asset_json(&*state.hub.asset_by_name(session.caller(), name)?)).into_response());
    }
    page(&state, session, &params, None, false).await
}

/// `GET /api/tenant/assetInfos`
async fn list_infos(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    page(&state, session, &params, None, true).await
}

/// `GET /api/customer/{customerId}/assets`
async fn list_of_customer(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(customer): PathOf<String>,
    params: Params,
) -> Answer {
    let customer = state.hub.customer(session.caller(), parse_id(&customer)?)?.id;
    page(&state, session, &params, Some(customer), false).await
}

/// `GET /api/customer/{customerId}/assetInfos`
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
    let listing = Listing::parse(params, EntityKind::Asset)?;
    let profile = params.text("assetProfileId").map(parse_id).transpose()?;
    let type_name = params.text("type").map(str::to_owned);
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let wanted = |asset: &Asset| {
            customer.is_none_or(|customer| asset.customer == Some(customer))
                && profile.is_none_or(|profile| asset.profile.id == profile)
                && type_name.as_deref().is_none_or(|name| asset.profile.name == name)
        };
        let found = hub.assets_page(session.caller(), listing.request(), wanted)?;
        Ok(page_answer(&found, |asset| match with_infos {
            true => info_json(&hub, session.caller(), asset),
            false => asset_json(asset),
        }))
    };
    state.reads.run(read).await?
}

/// `GET /api/assets?assetIds=`: those of the assets that the caller sees.
async fn list_of_ids(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    session.check(Action::Read)?;
    let ids = ids(&params, "assetIds")?;
    let found = ids.into_iter().filter_map(|id| state.hub.asset(session.caller(), id).ok());
    Ok(Json(found.map(|asset| asset_json(&asset)).collect::<Vec<_>>()).into_response())
}

/// `POST /api/assets`: assets that relations lead to.
async fn find(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(query): JsonBody<DeviceQueryJson>,
) -> Answer {
    let (types, query) = query.parse()?;
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let found = hub.related_entities(session.caller(), &query, EntityKind::Asset)?;
        let wanted = found.iter().filter_map(|entity| match entity {
            Entity::Asset(asset) if types.contains(&asset.profile.name) => Some(asset_json(asset)),
            _ => None,
        });
        Ok(Json(wanted.collect::<Vec<_>>()).into_response())
    };
    state.reads.run(read).await?
}

/// `GET /api/asset/types`: the names of the profiles that assets have.
async fn types(State(state): State<Arc<HttpState>>, session: Session) -> Answer {
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let assets = hub.visible_entities(session.caller(), EntityKind::Asset)?;
        let names: BTreeSet<String> =
            assets.iter().filter_map(|asset| asset.type_name().map(str::to_owned)).collect();
        Ok(types_answer(session.caller().tenant(), "ASSET", names.into_iter()))
    };
    state.reads.run(read).await?
}

/// `GET /api/asset/{id}`
async fn show(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    Ok(Json(asset_json(&*state.hub.asset(session.caller(), parse_id(&id)?)?)).into_response())
}

/// `GET /api/asset/info/{id}`
async fn info(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    let asset = state.hub.asset(session.caller(), parse_id(&id)?)?;
    Ok(Json(info_json(&state.hub, session.caller(), &asset)).into_response())
}

/// `DELETE /api/asset/{id}`
async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<(), ApiError> {
    let (hub, id) = (Arc::clone(&state.hub), parse_id(&id)?);
    state.changes.run(move || hub.delete_asset(session.caller(), id)).await??;
    Ok(())
}

/// `POST /api/customer/{customerId}/asset/{assetId}`: assigns an asset to a customer.
async fn assign(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((customer, id)): PathOf<(String, String)>,
) -> Answer {
    let (hub, customer, id) = (Arc::clone(&state.hub), parse_id(&customer)?, parse_id(&id)?);
    let assign = move || hub.assign_asset(session.caller(), id, Some(customer));
    Ok(Json(asset_json(&*state.changes.run(assign).await??)).into_response())
}

/// `DELETE /api/customer/asset/{assetId}`: ends the assignment of an asset.
async fn unassign(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let (hub, id) = (Arc::clone(&state.hub), parse_id(&id)?);
    let unassign = move || {
        if hub.asset(session.caller(), id)?.customer.is_none() {
            return Err(ApiError::argument("the asset is assigned to no customer"));
        }
        Ok(hub.assign_asset(session.caller(), id, None)?)
    };
    Ok(Json(asset_json(&*state.changes.run(unassign).await??)).into_response())
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
