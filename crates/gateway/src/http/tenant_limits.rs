//! Sets the limits of tenants.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::caller::Action;

use super::error_response::Answer;
use super::json::Json;
use super::request::{JsonBody, PathOf};
use super::session::Session;
use super::state::HttpState;
use super::tenant_limits_json::LimitsJson;

/// `POST /api/tacho/tenants/{name}/limits`: sets all limits of a tenant.
pub(super) async fn set(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(name): PathOf<String>,
    JsonBody(limits): JsonBody<LimitsJson>,
) -> Answer {
    session.check(Action::ManageTenants)?;
    let hub = Arc::clone(&state.hub);
    let set = move || hub.set_tenant_limits(session.caller(), &name, limits.into());
    let tenant = state.changes.run(set).await??;
    Ok(Json(LimitsJson::from(tenant.limits)).into_response())
}
