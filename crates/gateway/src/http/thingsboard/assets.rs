//! Assets in ThingsBoard's shapes.

use std::sync::Arc;

use hub::Hub;
use hub::caller::Caller;
use hub::registry::{Asset, AssetFields};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use super::assigned::{self, Assign, Assigned, Wanted};
use super::kind::{self, Delete, Find, Saved, Shown};
use crate::error::ApiError;
use crate::http::shapes::entities::{
    IdJson, add_customer, customer_id, info_text, no_public_customer, stored_json,
};
use crate::http::tools::json::entity;
use crate::http::tools::request::{Params, parse_id};
use crate::http::tools::route_list::Routes;

/// The routes of assets.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get_compressed("/api/tenant/assets", assigned::list::<Asset>)
        .get_compressed("/api/tenant/assetInfos", assigned::list_infos::<Asset>)
        .get_compressed("/api/customer/{id}/assets", assigned::list_of_customer::<Asset>)
        .get_compressed("/api/customer/{id}/assetInfos", assigned::list_infos_of_customer::<Asset>)
        .get_compressed("/api/assets", assigned::list_of_ids::<Asset>)
        .post("/api/assets", assigned::find::<Asset>)
        .post("/api/asset", kind::save::<AssetJson>)
        .get("/api/asset/types", assigned::types::<Asset>)
        .get("/api/asset/info/{id}", assigned::info::<Asset>)
        .get("/api/asset/{id}", assigned::show::<Asset>)
        .delete("/api/asset/{id}", kind::delete::<Asset>)
        .post("/api/customer/{customer}/asset/{id}", assigned::assign::<Asset>)
        .post("/api/customer/public/asset/{id}", no_public_customer)
        .delete("/api/customer/asset/{id}", assigned::unassign::<Asset>)
}

impl Shown for Asset {
    const FIND: Find<Self> = Hub::asset;
    const DELETE: Delete<Self> = Hub::delete_asset;

    fn json(&self, _caller: &Caller) -> JsonValue {
        json!({
            "id": entity("ASSET", self.id),
            "createdTime": self.created_at.millis(),
            "tenantId": entity("TENANT", self.tenant),
            "customerId": customer_id(self.customer),
            "assetProfileId": entity("ASSET_PROFILE", self.profile.id),
            "name": self.name,
            "type": self.profile.name,
            "label": self.label,
            "additionalInfo": stored_json(self.additional_info.as_deref()),
            "version": self.version,
        })
    }
}

impl Assigned for Asset {
    const LIST: &'static str = "/api/tenant/assets";
    const NAME: &'static str = "assetName";
    const ASSIGN: Assign<Self> = Hub::assign_asset;

    fn info(&self, hub: &Hub, caller: &Caller) -> JsonValue {
        let mut json = self.json(caller);
        add_customer(&mut json, hub, caller, self.customer);
        json["assetProfileName"] = self.profile.name.as_str().into();
        json
    }

    fn wanted(params: &Params, _with_infos: bool) -> Result<Wanted<Self>, ApiError> {
        let profile = params.text("assetProfileId").map(parse_id).transpose()?;
        let type_name = params.text("type").map(str::to_owned);
        Ok(Box::new(move |_, _, asset| {
            profile.is_none_or(|profile| asset.profile.id == profile)
                && type_name.as_deref().is_none_or(|name| asset.profile.name == name)
        }))
    }
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

impl Saved for AssetJson {
    type Kind = Asset;

    fn store(self, hub: &Hub, caller: &Caller) -> Result<Arc<Asset>, ApiError> {
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
