//! The sessions that outlive their connections, by key.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use super::error::BrokerError;
use super::limits;
use super::session::{Session, SessionKey};
use super::tenant_shares::{Shared, TenantShares};

/// Sessions by key, and their number by device and by tenant.
#[derive(Debug, Default)]
pub(super) struct SessionMap {
    by_key: HashMap<SessionKey, Arc<Session>>,
    by_device: HashMap<Uuid, usize>,
    by_tenant: HashMap<Uuid, usize>,
}

impl SessionMap {
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn get(&self, key: &SessionKey) -> Option<&Arc<Session>> {
        self.by_key.get(key)
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.by_key.values().cloned().collect()
    }

    /// The number of sessions of a tenant.
    pub(super) fn len_of(&self, tenant: Uuid) -> usize {
        self.by_tenant.get(&tenant).copied().unwrap_or(0)
    }

    /// Refuses another session of a device beyond the limits, of which `shares` gives the tenant its share.
    pub(super) fn check_room(
        &self,
        device: Uuid,
        tenant: Uuid,
        shares: &dyn TenantShares,
    ) -> Result<(), BrokerError> {
        let of_device = self.by_device.get(&device).copied().unwrap_or(0);
        let (max, of_tenant) = (limits::SESSIONS_MAX, self.len_of(tenant));
        let share = shares.most(tenant, Shared::Sessions, max as u64, (self.len() - of_tenant) as u64);
        let limits = [
            ("SESSIONS_MAX", max, self.len()),
            ("sessionsMax of the tenant, or its share of SESSIONS_MAX,", share as usize, of_tenant),
            ("SESSIONS_PER_DEVICE_MAX", limits::SESSIONS_PER_DEVICE_MAX, of_device),
        ];
        for (limit, max, present) in limits {
            if present >= max {
                let what = "too many sessions that outlive their connections";
                return Err(BrokerError::Limit { what, limit, max, actual: present + 1 });
            }
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, session: Arc<Session>) {
        let (device, tenant) = (session.key.device, session.tenant);
        if self.by_key.insert(session.key.clone(), session).is_none() {
            *self.by_device.entry(device).or_default() += 1;
            *self.by_tenant.entry(tenant).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, key: &SessionKey) {
        if let Some(session) = self.by_key.remove(key) {
            subtract_one(&mut self.by_device, key.device);
            subtract_one(&mut self.by_tenant, session.tenant);
        }
    }
}

fn subtract_one(counts: &mut HashMap<Uuid, usize>, of: Uuid) {
    if let Some(count) = counts.get_mut(&of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&of);
        }
    }
}
