//! Sets the limits of tenants.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::caller::Action;

use crate::http::shapes::tenant_limits::LimitsJson;
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, PathOf};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// `POST /api/tacho/tenants/{name}/limits`: sets all limits of a tenant.
pub(crate) async fn set(
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
