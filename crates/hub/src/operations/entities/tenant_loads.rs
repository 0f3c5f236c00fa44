//! What doors and metrics ask the hub about the loads of tenants.

use std::sync::Arc;

use uuid::Uuid;

use crate::hub::Hub;
use crate::metrics::TenantReport;
use crate::tenant_loads::{TENANTS_IN_METRICS_MAX, TenantLoad};

impl Hub {
    /// The load of a tenant, which a door asks and tells.
    pub fn tenant_load(&self, tenant: Uuid) -> Arc<TenantLoad> {
        let limits = || self.registry.tenant(tenant).map(|tenant| tenant.limits).unwrap_or_default();
        self.tenant_loads.of(tenant, limits)
    }

    /// What the tenants do, for the metrics.
    pub(crate) fn tenant_reports(&self) -> Vec<TenantReport> {
        let mut others = TenantReport::default();
        let mut reports = Vec::new();
        for tenant in self.registry.tenants() {
            let counts = self.tenant_loads.get(tenant.id).map(|load| load.counts()).unwrap_or_default();
            if reports.len() < TENANTS_IN_METRICS_MAX {
                // Anybody may read the metrics, and names of customers of an operator are not for everybody.
                let is_default = tenant.id == self.registry.default_tenant();
                let label = if is_default { "default".to_owned() } else { tenant.id.to_string() };
                reports.push(TenantReport { tenant: label, counts, limits: tenant.limits });
            } else {
                others.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        }
        if others.counts != [0; 4] {
            reports.push(others);
        }
        reports
    }
}
