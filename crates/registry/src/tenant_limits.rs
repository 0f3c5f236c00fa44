//! The limits of a tenant, which administrators of the installation set.

use std::num::NonZeroU32;

/// A limit of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantLimit {
    /// Messages of its devices in a second.
    Messages,
    /// Points that are written in a second.
    Points,
    /// MQTT connections of its devices at once.
    Connections,
    /// Tables.
    Tables,
    /// Series of its tables.
    Series,
    /// Columns of its tables.
    Columns,
    /// MQTT sessions of its devices that outlive their connections.
    Sessions,
    /// Subscriptions of all sessions of its devices.
    Subscriptions,
}

/// The limits of a tenant. What has no limit of its own is shared with the other tenants, as far as the installation limits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TenantLimits([Option<NonZeroU32>; TenantLimit::ALL.len()]);

impl TenantLimit {
    /// All limits, in the order of their values.
    pub const ALL: [Self; 8] = [
        Self::Messages,
        Self::Points,
        Self::Connections,
        Self::Tables,
        Self::Series,
        Self::Columns,
        Self::Sessions,
        Self::Subscriptions,
    ];

    /// Its name in requests, answers and refusals.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messagesPerSecondMax",
            Self::Points => "pointsPerSecondMax",
            Self::Connections => "connectionsMax",
            Self::Tables => "tablesMax",
            Self::Series => "seriesMax",
            Self::Columns => "columnsMax",
            Self::Sessions => "sessionsMax",
            Self::Subscriptions => "subscriptionsMax",
        }
    }

    /// Its name in the metrics and in the registry's file.
    pub const fn metric(self) -> &'static str {
        match self {
            Self::Messages => "messages_per_second_max",
            Self::Points => "points_per_second_max",
            Self::Connections => "connections_max",
            Self::Tables => "tables_max",
            Self::Series => "series_max",
            Self::Columns => "columns_max",
            Self::Sessions => "sessions_max",
            Self::Subscriptions => "subscriptions_max",
        }
    }

    /// The limit with a [`name`](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.name() == name)
    }
}

impl TenantLimits {
    /// The value of a limit; `None` if there is none.
    pub fn value(&self, limit: TenantLimit) -> Option<NonZeroU32> {
        self.0[limit as usize]
    }

    /// These limits with another value of one of them.
    #[must_use]
    pub fn with(mut self, limit: TenantLimit, value: Option<NonZeroU32>) -> Self {
        self.0[limit as usize] = value;
        self
    }

    /// The limits with the values that `value` gives.
    ///
    /// # Errors
    /// The first error of `value`.
    pub fn try_from_fn<E>(
        mut value: impl FnMut(TenantLimit) -> Result<Option<NonZeroU32>, E>,
    ) -> Result<Self, E> {
        TenantLimit::ALL
            .into_iter()
            .try_fold(Self::default(), |limits, limit| Ok(limits.with(limit, value(limit)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_a_place_and_a_name_of_its_own() {
        let values = |limit: TenantLimit| Ok::<_, ()>(NonZeroU32::new(limit as u32 + 1));
        let limits = TenantLimits::try_from_fn(values).unwrap();
        for (place, limit) in (1..).zip(TenantLimit::ALL) {
            assert_eq!(limits.value(limit), NonZeroU32::new(place));
            assert_eq!(TenantLimit::named(limit.name()), Some(limit));
        }
        assert_eq!(TenantLimit::named("tables"), None);
    }
}
