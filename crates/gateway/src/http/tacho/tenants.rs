//! Manages tenants. The door logs each change.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::caller::Action;
use hub::registry::Tenant;
use serde::Deserialize;
use serde_json::{Value as JsonValue, json};

use crate::error::ApiError;
use crate::http::shapes::tenant_limits::LimitsJson;
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, PathOf};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTenant {
    name: String,
    /// The login of the first administrator.
    login: String,
    password: String,
}

/// `GET /api/tacho/tenants`
pub(crate) async fn list(
    State(state): State<Arc<HttpState>>,
    session: Session,
) -> Result<Response, ApiError> {
    let tenants = state.hub.tenants(session.caller())?;
    let tenants: Vec<_> = tenants.iter().map(|tenant| tenant_json(tenant)).collect();
    Ok(Json(json!({ "tenants": tenants })).into_response())
}

/// `POST /api/tacho/tenants`: adds a tenant with its first administrator.
pub(crate) async fn add(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<NewTenant>,
) -> Result<Response, ApiError> {
    session.check(Action::ManageTenants)?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let add = move || hub.add_tenant(&caller, &new.name, &new.login, &new.password);
    let added = state.changes.run(add).await??;
    tracing::info!(by = session.caller().login(), tenant = added.name, "tenants: added a tenant");
    Ok(Json(tenant_json(&added)).into_response())
}

/// `DELETE /api/tacho/tenants/{name}`: deletes a tenant with its devices, users and tables, and ends its sessions.
pub(crate) async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(name): PathOf<String>,
) -> Result<(), ApiError> {
    session.check(Action::ManageTenants)?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let deleted = state.changes.run(move || hub.delete_tenant(&caller, &name)).await??;
    tracing::info!(by = session.caller().login(), tenant = deleted.name, "tenants: deleted a tenant");
    Ok(())
}

fn tenant_json(tenant: &Tenant) -> JsonValue {
    json!({ "id": tenant.id, "name": tenant.name, "limits": LimitsJson::from(tenant.limits) })
}
