//! Asset profiles in ThingsBoard's shapes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::caller::Caller;
use hub::registry::AssetProfile;
use hub::{EntityKind, Hub};
use serde::Deserialize;
use serde_json::{Value as JsonValue, json};

use super::kind::{self, Delete, Find, Saved, Shown};
use crate::error::ApiError;
use crate::http::shapes::entities::{IdJson, Listing, page_answer};
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{Params, PathOf, path_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of asset profiles.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/assetProfiles", list)
        .get("/api/assetProfileInfos", list_infos)
        .get("/api/assetProfile/names", names)
        .get("/api/assetProfile/{id}", kind::show::<AssetProfile>)
        .get("/api/assetProfileInfo/default", default_info)
        .get("/api/assetProfileInfo/{id}", info)
        .post("/api/assetProfile", kind::save::<AssetProfileJson>)
        .post("/api/assetProfile/{id}/default", set_default)
        .delete("/api/assetProfile/{id}", kind::delete::<AssetProfile>)
}

impl Shown for AssetProfile {
    const FIND: Find<Self> = Hub::find;
    /// A profile that assets have is refused.
    const DELETE: Delete<Self> = Hub::delete_asset_profile;

    fn json(&self, _caller: &Caller) -> JsonValue {
        json!({
            "id": entity("ASSET_PROFILE", self.id),
            "createdTime": self.created_at.millis(),
            "tenantId": entity("TENANT", self.tenant),
            "name": self.name,
            "description": self.description,
            "image": null,
            "defaultRuleChainId": null,
            "defaultDashboardId": null,
            "defaultQueueName": null,
            "defaultEdgeRuleChainId": null,
            "default": self.is_default,
            "version": self.version,
        })
    }
}

/// ThingsBoard's `AssetProfileInfo`.
fn info_json(profile: &AssetProfile) -> JsonValue {
    json!({
        "id": entity("ASSET_PROFILE", profile.id),
        "tenantId": entity("TENANT", profile.tenant),
        "name": profile.name,
        "image": null,
        "defaultDashboardId": null,
    })
}

/// `GET /api/assetProfiles`
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let listing = Listing::parse(&params, EntityKind::AssetProfile)?;
    let found = state.hub.page::<AssetProfile>(session.caller(), listing.request(), |_| true)?;
    Ok(page_answer(&found, |profile| profile.json(session.caller())))
}

/// `GET /api/assetProfileInfos`
async fn list_infos(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let listing = Listing::parse(&params, EntityKind::AssetProfile)?;
    let found = state.hub.page::<AssetProfile>(session.caller(), listing.request(), |_| true)?;
    Ok(page_answer(&found, |profile| info_json(profile)))
}

/// `GET /api/assetProfile/names?activeOnly=`: with `activeOnly` those that assets have.
async fn names(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let active_only = params.flag("activeOnly")?;
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let mut profiles = hub.visible_entities(session.caller(), EntityKind::AssetProfile)?;
        if active_only {
            let used = hub.used_profiles(session.caller(), EntityKind::Asset)?;
            profiles.retain(|profile| used.contains(&profile.id().id));
        }
        let one = |profile: &hub::Entity| json!({ "id": entity("ASSET_PROFILE", profile.id().id), "name": profile.name() });
        Ok(Json(profiles.iter().map(one).collect::<Vec<_>>()).into_response())
    };
    state.reads.run(read).await?
}

/// `GET /api/assetProfileInfo/default`
async fn default_info(State(state): State<Arc<HttpState>>, session: Session) -> Answer {
    Ok(Json(info_json(&*state.hub.default_asset_profile(session.caller())?)).into_response())
}

/// `GET /api/assetProfileInfo/{id}`
async fn info(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    let profile = state.hub.find::<AssetProfile>(session.caller(), path_id(&id)?)?;
    Ok(Json(info_json(&profile)).into_response())
}

/// A profile in a request. `default` changes with its own request, as in ThingsBoard.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AssetProfileJson {
    id: Option<IdJson>,
    name: String,
    description: Option<String>,
    version: Option<i64>,
}

impl Saved for AssetProfileJson {
    type Kind = AssetProfile;

    fn store(self, hub: &Hub, caller: &Caller) -> Result<Arc<AssetProfile>, ApiError> {
        let (name, description) = (&self.name, self.description.as_deref());
        Ok(match self.id {
            Some(IdJson { id }) => hub.change_asset_profile(caller, id, name, description, self.version)?,
            None => hub.add_asset_profile(caller, name, description)?,
        })
    }
}

/// `POST /api/assetProfile/{id}/default`: assets that are added without a profile get this one.
async fn set_default(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let (hub, id) = (Arc::clone(&state.hub), path_id(&id)?);
    let set = move || {
        let profile = hub.set_default_asset_profile(session.caller(), id)?;
        Ok(Json(profile.json(session.caller())).into_response())
    };
    state.changes.run(set).await?
}
