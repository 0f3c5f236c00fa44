//! Metrics of tenants.

use std::sync::atomic::Ordering;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::registry::{TenantLimit, TenantLimits};

/// What a tenant has of something that has a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TenantUsage {
    /// The name of what it has, such as `tables`.
    pub(crate) resource: &'static str,
    pub(crate) used: u64,
    /// The most that it may have: its limit or its share.
    pub(crate) most: u64,
}

/// What a tenant does.
#[derive(Debug, Clone, Default)]
pub(crate) struct TenantReport {
    /// Its id, or `default`; empty for the sum of tenants that are not listed.
    pub(crate) tenant: String,
    /// Connections, messages, points, and how often something was held or refused.
    pub(crate) counts: [u64; 4],
    pub(crate) limits: TenantLimits,
    /// Nothing for the sum of tenants that are not listed.
    pub(crate) usage: Vec<TenantUsage>,
}

/// Metrics of tenants. They are made again for each text, so tenants that are gone or renamed leave nothing.
#[derive(Debug, Default)]
pub(super) struct TenantMetrics {
    connections: Family<TenantLabel, Gauge>,
    messages: Family<TenantLabel, Counter>,
    points: Family<TenantLabel, Counter>,
    limited: Family<TenantLabel, Counter>,
    limits: Family<TenantLimitLabel, Gauge>,
    used: Family<TenantResourceLabel, Gauge>,
    shares: Family<TenantResourceLabel, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TenantLabel {
    tenant: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TenantResourceLabel {
    tenant: String,
    resource: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TenantLimitLabel {
    tenant: String,
    limit: &'static str,
}

impl TenantMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "tenant_connections",
            "Open MQTT connections of a tenant",
            self.connections.clone(),
        );
        for (name, help, counters) in [
            ("tenant_messages", "Messages of the devices of a tenant", &self.messages),
            ("tenant_points", "Field values of a tenant", &self.points),
            ("tenant_limited", "How often a limit of a tenant held or refused something", &self.limited),
        ] {
            registry.register(name, help, counters.clone());
        }
        registry.register("tenant_limit", "The limits of a tenant", self.limits.clone());
        registry.register("tenant_used", "What a tenant has of what the tenants share", self.used.clone());
        registry.register(
            "tenant_share",
            "The most that a tenant may have of it: its limit, or half of what the others leave",
            self.shares.clone(),
        );
    }

    pub(super) fn set(&self, reports: &[TenantReport]) {
        self.connections.clear();
        self.limits.clear();
        self.used.clear();
        self.shares.clear();
        for counters in [&self.messages, &self.points, &self.limited] {
            counters.clear();
        }
        for TenantReport { tenant, counts, limits, usage } in reports {
            let label = TenantLabel { tenant: tenant.clone() };
            let [connections, messages, points, limited] = *counts;
            self.connections.get_or_create(&label).set(i64::try_from(connections).unwrap_or(i64::MAX));
            for (counters, count) in
                [(&self.messages, messages), (&self.points, points), (&self.limited, limited)]
            {
                counters.get_or_create(&label).inner().store(count, Ordering::Relaxed);
            }
            for TenantUsage { resource, used, most } in usage {
                let label = TenantResourceLabel { tenant: tenant.clone(), resource };
                self.used.get_or_create(&label).set(i64::try_from(*used).unwrap_or(i64::MAX));
                self.shares.get_or_create(&label).set(i64::try_from(*most).unwrap_or(i64::MAX));
            }
            for limit in TenantLimit::ALL {
                let Some(value) = limits.value(limit) else { continue };
                let label = TenantLimitLabel { tenant: tenant.clone(), limit: limit.metric() };
                self.limits.get_or_create(&label).set(value.get().into());
            }
        }
    }
}
