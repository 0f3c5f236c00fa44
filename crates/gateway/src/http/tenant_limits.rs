//! Sets the limits of tenants.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::caller::Action;

use super::shapes::tenant_limits::LimitsJson;
use super::tools::error_response::Answer;
use super::tools::json::Json;
use super::tools::request::{JsonBody, PathOf};
use super::tools::session::Session;
use super::tools::state::HttpState;

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
