//! The loads of all tenants.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use uuid::Uuid;

use super::TENANTS_IN_METRICS_MAX;
use super::load::TenantLoad;
use crate::hub::Hub;
use crate::metrics::TenantReport;
use crate::registry::TenantLimits;

/// The loads of tenants that were active since the start.
#[derive(Debug, Default)]
pub(crate) struct TenantLoads(RwLock<HashMap<Uuid, Arc<TenantLoad>>>);

impl TenantLoads {
    /// The load of a tenant; with these limits if it is a new one.
    fn of(&self, tenant: Uuid, limits: impl FnOnce() -> TenantLimits) -> Arc<TenantLoad> {
        if let Some(load) = self.0.read().get(&tenant) {
            return Arc::clone(load);
        }
        let mut loads = self.0.write();
        let load = loads.entry(tenant);
        // Under the lock: limits that are set meanwhile come after these.
        Arc::clone(load.or_insert_with(|| Arc::new(TenantLoad::with(limits(), Instant::now()))))
    }

    /// Sets the limits of a tenant.
    pub(crate) fn set(&self, tenant: Uuid, limits: TenantLimits) {
        self.of(tenant, || limits).set_limits(limits, Instant::now());
    }

    /// Forgets a deleted tenant.
    pub(crate) fn forget(&self, tenant: Uuid) {
        self.0.write().remove(&tenant);
    }
}

impl Hub {
    /// The load of a tenant, which a door asks and tells.
    pub fn tenant_load(&self, tenant: Uuid) -> Arc<TenantLoad> {
        let limits = || self.registry.tenant(tenant).map(|tenant| tenant.limits).unwrap_or_default();
        self.tenant_loads.of(tenant, limits)
    }

    /// What the tenants do, for the metrics.
    pub(crate) fn tenant_reports(&self) -> Vec<TenantReport> {
        let loads = self.tenant_loads.0.read();
        let mut others = TenantReport::default();
        let mut reports = Vec::new();
        for tenant in self.registry.tenants() {
            let counts = loads.get(&tenant.id).map(|load| load.counts()).unwrap_or_default();
            if reports.len() < TENANTS_IN_METRICS_MAX {
                reports.push(TenantReport { tenant: tenant.name.clone(), counts, limits: tenant.limits });
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
