//! Tenants in ThingsBoard's shapes, for administrators of the installation. There are no tenant profiles.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::EntityKind;
use hub::caller::Action;
use hub::registry::{Contact, Tenant, TenantFields};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::error::ApiError;
use crate::http::shapes::entities::{
    IdJson, Listing, NULL_UUID, add_contact, info_text, page_answer, present, refuse, stored_json,
};
use crate::http::shapes::tenant_limits::LimitsJson;
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{JsonBody, Params, PathOf, parse_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of tenants.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/tenants", list)
        .get("/api/tenantInfos", list_infos)
        .post("/api/tenant", save)
        .get("/api/tenant/info/{id}", info)
        .get("/api/tenant/{id}", show)
        .delete("/api/tenant/{id}", delete)
}

type Answer = Result<Response, ApiError>;

/// ThingsBoard's only region.
const REGION: &str = "Global";

fn tenant_json(tenant: &Tenant) -> JsonValue {
    let mut json = json!({
        "id": entity("TENANT", tenant.id),
        "createdTime": tenant.created_at.millis(),
        "title": tenant.name,
        "name": tenant.name,
        "region": REGION,
        "tenantProfileId": entity("TENANT_PROFILE", NULL_UUID),
        "additionalInfo": stored_json(tenant.additional_info.as_deref()),
        "tachoLimits": LimitsJson::from(tenant.limits),
        "version": tenant.version,
    });
    add_contact(&mut json, &tenant.contact);
    json
}

/// ThingsBoard's `TenantInfo`.
fn info_json(tenant: &Tenant) -> JsonValue {
    let mut json = tenant_json(tenant);
    json["tenantProfileName"] = "Default".into();
    json
}

/// `GET /api/tenants`
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let listing = Listing::parse(&params, EntityKind::Tenant)?;
    let found = state.hub.tenants_page(session.caller(), listing.request())?;
    Ok(page_answer(&found, |tenant| tenant_json(tenant)))
}

/// `GET /api/tenantInfos`
async fn list_infos(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let listing = Listing::parse(&params, EntityKind::Tenant)?;
    let found = state.hub.tenants_page(session.caller(), listing.request())?;
    Ok(page_answer(&found, |tenant| info_json(tenant)))
}

/// `GET /api/tenant/{id}`
async fn show(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    Ok(Json(tenant_json(&*state.hub.tenant(session.caller(), parse_id(&id)?)?)).into_response())
}

/// `GET /api/tenant/info/{id}`
async fn info(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    Ok(Json(info_json(&*state.hub.tenant(session.caller(), parse_id(&id)?)?)).into_response())
}

/// A tenant in a request. It replaces what the tenant has.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TenantJson {
    id: Option<IdJson>,
    title: String,
    region: Option<JsonValue>,
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

/// `POST /api/tenant`: adds a tenant without users, or changes it if the body has an `id`. `POST /api/user` with its `tenantId` adds
/// its first administrator.
async fn save(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<TenantJson>,
) -> Answer {
    session.check(Action::ManageTenants)?;
    refuse("region", new.region.as_ref(), &[json!(REGION)])?;
    if new.tenant_profile_id.is_some_and(|profile| profile.id != NULL_UUID) {
        return Err(ApiError::argument("there are no tenant profiles here; leave tenantProfileId out"));
    }
    let hub = Arc::clone(&state.hub);
    let store = move || {
        let TenantJson { country, state, city, address, address2, zip, phone, email, .. } = new;
        let fields = TenantFields {
            name: &new.title,
            contact: Contact { country, state, city, address, address2, zip, phone, email },
            additional_info: info_text(new.additional_info.as_deref()),
            limits: new.tacho_limits.map(|limits| limits.unwrap_or_default().into()),
        };
        match new.id {
            Some(IdJson { id }) => hub.change_tenant(session.caller(), id, &fields, new.version),
            None => hub.add_empty_tenant(session.caller(), &fields),
        }
    };
    Ok(Json(tenant_json(&*state.changes.run(store).await??)).into_response())
}

/// `DELETE /api/tenant/{id}`: deletes a tenant with its devices, users and tables, and ends its sessions.
async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<(), ApiError> {
    session.check(Action::ManageTenants)?;
    let (hub, id) = (Arc::clone(&state.hub), parse_id(&id)?);
    let delete = move || {
        let name = hub.tenant(session.caller(), id)?.name.clone();
        hub.delete_tenant(session.caller(), &name)
    };
    state.changes.run(delete).await??;
    Ok(())
}
