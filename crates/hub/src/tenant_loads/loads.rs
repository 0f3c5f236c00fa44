//! The loads of all tenants.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use uuid::Uuid;

use super::load::TenantLoad;
use crate::registry::TenantLimits;

/// The loads of tenants that were active since the start.
#[derive(Debug, Default)]
pub(crate) struct TenantLoads(RwLock<HashMap<Uuid, Arc<TenantLoad>>>);

impl TenantLoads {
    /// The load of a tenant; with these limits if it is a new one.
    pub(crate) fn of(&self, tenant: Uuid, limits: impl FnOnce() -> TenantLimits) -> Arc<TenantLoad> {
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

    /// The load of a tenant that was active since the start.
    pub(crate) fn get(&self, tenant: Uuid) -> Option<Arc<TenantLoad>> {
        self.0.read().get(&tenant).cloned()
    }

    /// Forgets a deleted tenant.
    pub(crate) fn forget(&self, tenant: Uuid) {
        self.0.write().remove(&tenant);
    }
}
