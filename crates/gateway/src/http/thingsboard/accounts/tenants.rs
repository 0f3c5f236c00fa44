//! Tenants in ThingsBoard's shapes, for administrators of the installation. There are no tenant profiles.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::caller::{Action, Caller};
use hub::registry::{Contact, Tenant, TenantFields};
use hub::{EntityKind, Hub};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::error::ApiError;
use crate::http::shapes::entities::{
    IdJson, Listing, NULL_UUID, add_contact, info_text, page_answer, present, stored_json,
};
use crate::http::shapes::tenant_limits::LimitsJson;
use crate::http::thingsboard::kind::{self, Delete, Find, Saved, Shown};
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{Params, PathOf, path_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of tenants.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/tenants", list)
        .get("/api/tenantInfos", list_infos)
        .post("/api/tenant", kind::save::<TenantJson>)
        .get("/api/tenant/info/{id}", info)
        .get("/api/tenant/{id}", kind::show::<Tenant>)
        .delete("/api/tenant/{id}", kind::delete::<Tenant>)
}

/// ThingsBoard's only region.
const REGION: &str = "Global";

impl Shown for Tenant {
    const FIND: Find<Self> = Hub::tenant;
    /// Deletes its devices, users and tables too, and ends its sessions.
    const DELETE: Delete<Self> = |hub, caller, id| {
        caller.check(Action::ManageTenants)?;
        hub.delete_tenant(caller, &hub.tenant(caller, id)?.name)
    };

    fn json(&self, _caller: &Caller) -> JsonValue {
        let mut json = json!({
            "id": entity("TENANT", self.id),
            "createdTime": self.created_at.millis(),
            "title": self.name,
            "name": self.name,
            "region": REGION,
            "tenantProfileId": entity("TENANT_PROFILE", NULL_UUID),
            "additionalInfo": stored_json(self.additional_info.as_deref()),
            "tachoLimits": LimitsJson::from(self.limits),
            "version": self.version,
        });
        add_contact(&mut json, &self.contact);
        json
    }
}

/// ThingsBoard's `TenantInfo`.
fn info_json(tenant: &Tenant, caller: &Caller) -> JsonValue {
    let mut json = tenant.json(caller);
    json["tenantProfileName"] = "Default".into();
    json
}

/// `GET /api/tenants`
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let listing = Listing::parse(&params, EntityKind::Tenant)?;
    let found = state.hub.tenants_page(session.caller(), listing.request())?;
    Ok(page_answer(&found, |tenant| tenant.json(session.caller())))
}

/// `GET /api/tenantInfos`
async fn list_infos(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let listing = Listing::parse(&params, EntityKind::Tenant)?;
    let found = state.hub.tenants_page(session.caller(), listing.request())?;
    Ok(page_answer(&found, |tenant| info_json(tenant, session.caller())))
}

/// `GET /api/tenant/info/{id}`
async fn info(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    let tenant = state.hub.tenant(session.caller(), path_id(&id)?)?;
    Ok(Json(info_json(&tenant, session.caller())).into_response())
}

/// A tenant in a request. It replaces what the tenant has.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TenantJson {
    id: Option<IdJson>,
    title: String,
    tenant_profile_id: Option<IdJson>,
    country: Option<Box<str>>,
    state: Option<Box<str>>,
    city: Option<Box<str>>,
    address: Option<Box<str>>,
    address2: Option<Box<str>>,
    zip: Option<Box<str>>,
    phone: Option<Box<str>>,
    email: Option<Box<str>>,
    additional_info: Option<Box<RawValue>>,
    /// Absent, the tenant keeps its limits.
    #[serde(default, deserialize_with = "present")]
    tacho_limits: Option<Option<LimitsJson>>,
    version: Option<i64>,
}

/// A new tenant has no users: `POST /api/user` with its `tenantId` adds its first administrator.
impl Saved for TenantJson {
    type Kind = Tenant;
    const NEEDS: Action = Action::ManageTenants;

    fn check(&self) -> Result<(), ApiError> {
        if self.tenant_profile_id.is_some_and(|profile| profile.id != NULL_UUID) {
            return Err(ApiError::argument("there are no tenant profiles here; leave tenantProfileId out"));
        }
        Ok(())
    }

    fn store(self, hub: &Hub, caller: &Caller) -> Result<Arc<Tenant>, ApiError> {
        let TenantJson { country, state, city, address, address2, zip, phone, email, .. } = self;
        let fields = TenantFields {
            name: &self.title,
            contact: Contact { country, state, city, address, address2, zip, phone, email },
            additional_info: info_text(self.additional_info.as_deref()),
            limits: self.tacho_limits.map(|limits| limits.unwrap_or_default().into()),
        };
        Ok(match self.id {
            Some(IdJson { id }) => hub.change_tenant(caller, id, &fields, self.version)?,
            None => hub.add_empty_tenant(caller, &fields)?,
        })
    }
}
