//! The limits of a tenant, which administrators of the installation set.

use std::num::NonZeroU32;

/// A limit of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantLimit {
    /// Messages of its devices in a second.
    Messages,
    /// Points that are written in a second.
    Points,
    /// Connections of its devices.
    Connections,
}

/// The limits of a tenant; `None` is not a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TenantLimits {
    /// Most messages of its devices in a second.
    pub messages_per_second_max: Option<NonZeroU32>,
    /// Most points in a second that its devices and users write.
    pub points_per_second_max: Option<NonZeroU32>,
    /// Most MQTT connections of its devices at once.
    pub connections_max: Option<NonZeroU32>,
}

impl TenantLimit {
    /// All limits.
    pub const ALL: [Self; 3] = [Self::Messages, Self::Points, Self::Connections];

    /// Its name in requests, answers and refusals.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messagesPerSecondMax",
            Self::Points => "pointsPerSecondMax",
            Self::Connections => "connectionsMax",
        }
    }

    /// Its name in the metrics.
    pub const fn metric(self) -> &'static str {
        match self {
            Self::Messages => "messages_per_second_max",
            Self::Points => "points_per_second_max",
            Self::Connections => "connections_max",
        }
    }
}

impl TenantLimits {
    /// The value of a limit; `None` if there is none.
    pub fn value(&self, limit: TenantLimit) -> Option<NonZeroU32> {
        match limit {
            TenantLimit::Messages => self.messages_per_second_max,
            TenantLimit::Points => self.points_per_second_max,
            TenantLimit::Connections => self.connections_max,
        }
    }
}
