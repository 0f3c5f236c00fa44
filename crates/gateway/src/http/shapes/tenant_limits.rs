//! The limits of tenants in requests and answers.

use std::num::NonZeroU32;

use hub::registry::TenantLimits;
use serde::{Deserialize, Serialize};

/// The limits of a tenant; `null` and an absent member are not a limit.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LimitsJson {
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
