//! The limits of tenants in requests and answers.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::caller::Action;
use hub::registry::TenantLimits;
use serde::{Deserialize, Serialize};

use super::assigned::Answer;
use super::json::Json;
use super::request::{JsonBody, PathOf};
use super::session::Session;
use super::state::HttpState;

/// The limits of a tenant; `null` and an absent member are no limit.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LimitsJson {
    messages_per_second_max: Option<NonZeroU32>,
    points_per_second_max: Option<NonZeroU32>,
    connections_max: Option<NonZeroU32>,
}

impl From<TenantLimits> for LimitsJson {
    fn from(limits: TenantLimits) -> Self {
        let TenantLimits { messages_per_second_max, points_per_second_max, connections_max } = limits;
        Self { messages_per_second_max, points_per_second_max, connections_max }
    }
}

impl From<LimitsJson> for TenantLimits {
    fn from(limits: LimitsJson) -> Self {
        let LimitsJson { messages_per_second_max, points_per_second_max, connections_max } = limits;
        Self { messages_per_second_max, points_per_second_max, connections_max }
    }
}

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
