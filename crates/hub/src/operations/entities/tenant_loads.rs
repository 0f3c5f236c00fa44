//! What doors and metrics ask the hub about the loads of tenants.

use std::sync::Arc;

use store::DefinitionCounts;
use uuid::Uuid;

use crate::hub::Hub;
use crate::metrics::{TenantReport, TenantUsage};
use crate::tenant_loads::{TENANTS_IN_METRICS_MAX, TenantLoad};

impl Hub {
    /// The load of a tenant, which a door asks and tells.
    pub fn tenant_load(&self, tenant: Uuid) -> Arc<TenantLoad> {
        let limits = || self.registry.tenant(tenant).map(|tenant| tenant.limits).unwrap_or_default();
        self.tenant_loads.of(tenant, limits)
    }

    /// What the tenants do, for the metrics.
    pub(crate) fn tenant_reports(&self) -> Vec<TenantReport> {
        let definitions = self.store.definitions();
        let mut others = TenantReport::default();
        let mut reports = Vec::new();
        for tenant in self.registry.tenants() {
            let counts = self.tenant_loads.get(tenant.id).map(|load| load.counts()).unwrap_or_default();
            if reports.len() < TENANTS_IN_METRICS_MAX {
                // Anybody may read the metrics, and names of customers of an operator are not for everybody.
                let is_default = tenant.id == self.registry.default_tenant();
                let label = if is_default { "default".to_owned() } else { tenant.id.to_string() };
                let usage = self.tenant_usage(tenant.id, &definitions);
                reports.push(TenantReport { tenant: label, counts, limits: tenant.limits, usage });
            } else {
                others.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        }
        if others.counts != [0; 4] {
            reports.push(others);
        }
        reports
    }

    /// What a tenant has of what the tenants share.
    fn tenant_usage(&self, tenant: Uuid, definitions: &DefinitionCounts) -> Vec<TenantUsage> {
        let (own, own_most) = self.tenant_shares.definitions_of(tenant, definitions);
        let (of_broker, broker_most) = self.broker.tenant_use(tenant);
        let usage = |resource, used, most| TenantUsage { resource, used, most };
        vec![
            usage("tables", own.tables, own_most.tables),
            usage("series", own.series, own_most.series),
            usage("columns", own.columns, own_most.columns),
            usage("sessions", of_broker.sessions, broker_most.sessions),
            usage("subscriptions", of_broker.subscriptions, broker_most.subscriptions),
            usage("message_bytes", of_broker.memory_bytes, broker_most.memory_bytes),
            usage("retained_topics", of_broker.retained_topics, broker_most.retained_topics),
            usage("retained_bytes", of_broker.retained_bytes, broker_most.retained_bytes),
        ]
    }
}
