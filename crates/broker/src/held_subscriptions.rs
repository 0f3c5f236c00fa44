//! What the subscriptions of each device and tenant take: one cannot take the room of the others.

use std::collections::HashMap;

use parking_lot::Mutex;
use uuid::Uuid;

use super::error::BrokerError;
use super::limits;
use super::session::Session;
use super::tenant_shares::{Shared, TenantShares};
use model::topic::{group_of, levels};

/// Subscriptions of all sessions by device and by tenant.
#[derive(Debug)]
pub(super) struct HeldSubscriptions {
    counts: Mutex<Counts>,
    /// Most of all tenants.
    max: usize,
}

#[derive(Debug, Default)]
struct Counts {
    by_device: HashMap<Uuid, Held>,
    by_tenant: HashMap<Uuid, usize>,
    all: usize,
}

/// Subscriptions of one device.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Held {
    all: usize,
    /// Those that make matches dear, and their levels.
    wildcards: usize,
    wildcard_levels: usize,
}

impl HeldSubscriptions {
    /// Counts nothing yet; `max` is the most of all tenants.
    pub(super) fn new(max: usize) -> Self {
        Self { counts: Mutex::default(), max }
    }

    /// Counts a new subscription, unless a limit refuses it. `shares` gives the tenant its share.
    pub(super) fn add(
        &self,
        session: &Session,
        filter: &str,
        shares: &dyn TenantShares,
    ) -> Result<(), BrokerError> {
        let mut counts = self.counts.lock();
        let held = counts.by_device.get(&session.key.device).copied().unwrap_or_default();
        let with = held.with(filter)?;
        counts.check_share(session.tenant, self.max, shares)?;
        counts.set(session, with);
        Ok(())
    }

    /// Counts a subscription that the engine has kept. A start of the server loses none.
    pub(super) fn add_stored(&self, session: &Session, filter: &str) {
        let mut counts = self.counts.lock();
        let held = counts.by_device.get(&session.key.device).copied().unwrap_or_default();
        counts.set(session, held.sum(Held::of(filter)));
    }

    pub(super) fn remove(&self, session: &Session, filter: &str) {
        let mut counts = self.counts.lock();
        let Some(held) = counts.by_device.get(&session.key.device).copied() else { return };
        counts.set(session, held.without(Held::of(filter)));
    }

    /// The subscriptions of a tenant, those of all, and the most of all.
    pub(super) fn of_tenant(&self, tenant: Uuid) -> (usize, usize, usize) {
        let counts = self.counts.lock();
        (counts.of_tenant(tenant), counts.all, self.max)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let counts = self.counts.lock();
        counts.by_device.is_empty() && counts.by_tenant.is_empty() && counts.all == 0
    }
}

impl Counts {
    fn of_tenant(&self, tenant: Uuid) -> usize {
        self.by_tenant.get(&tenant).copied().unwrap_or(0)
    }

    /// Refuses one more subscription of a tenant that has its share.
    fn check_share(&self, tenant: Uuid, max: usize, shares: &dyn TenantShares) -> Result<(), BrokerError> {
        let own = self.of_tenant(tenant);
        let share = shares.most(tenant, Shared::Subscriptions, max as u64, (self.all - own) as u64);
        if (own as u64) < share {
            return Ok(());
        }
        Err(BrokerError::Limit {
            what: "subscriptions of one tenant",
            limit: "subscriptionsMax of the tenant, or its share of SUBSCRIPTIONS_MAX,",
            max: share as usize,
            actual: own + 1,
        })
    }

    /// Sets what the device of a session has.
    fn set(&mut self, session: &Session, held: Held) {
        let device = session.key.device;
        let before = match held == Held::default() {
            true => self.by_device.remove(&device),
            false => self.by_device.insert(device, held),
        };
        let before = before.unwrap_or_default().all;
        self.all = self.all - before + held.all;
        let own = self.of_tenant(session.tenant) - before + held.all;
        match own {
            0 => drop(self.by_tenant.remove(&session.tenant)),
            own => drop(self.by_tenant.insert(session.tenant, own)),
        }
    }
}

impl Held {
    fn of(filter: &str) -> Self {
        let (_, own) = group_of(filter);
        let tail = || levels(own).skip_while(|level| *level != "+").filter(|level| *level != "#");
        let (tail_levels, wildcards) = (tail().count(), tail().filter(|level| *level == "+").count());
        match wildcards > 1 || tail_levels > limits::WILDCARD_TAIL_LEVELS {
            true => Self { all: 1, wildcards: 1, wildcard_levels: tail_levels },
            false => Self { all: 1, wildcards: 0, wildcard_levels: 0 },
        }
    }

    fn sum(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            wildcards: self.wildcards + other.wildcards,
            wildcard_levels: self.wildcard_levels + other.wildcard_levels,
        }
    }

    fn without(self, other: Self) -> Self {
        Self {
            all: self.all - other.all,
            wildcards: self.wildcards - other.wildcards,
            wildcard_levels: self.wildcard_levels - other.wildcard_levels,
        }
    }

    fn with(self, filter: &str) -> Result<Self, BrokerError> {
        let next = self.sum(Self::of(filter));
        let (count_max, levels_max) =
            (limits::WILDCARD_SUBSCRIPTIONS_PER_DEVICE_MAX, limits::WILDCARD_LEVELS_PER_DEVICE_MAX);
        let bounds = [
            (
                "subscriptions of one device",
                "SUBSCRIPTIONS_PER_DEVICE_MAX",
                self.all,
                next.all,
                limits::SUBSCRIPTIONS_PER_DEVICE_MAX,
            ),
            (
                "subscriptions of one device with several `+`",
                "WILDCARD_SUBSCRIPTIONS_PER_DEVICE_MAX",
                self.wildcards,
                next.wildcards,
                count_max,
            ),
            (
                "levels after `+` in the subscriptions of one device",
                "WILDCARD_LEVELS_PER_DEVICE_MAX",
                self.wildcard_levels,
                next.wildcard_levels,
                levels_max,
            ),
        ];
        for (what, limit, before, actual, max) in bounds {
            // A device that is above a limit since the start may have what does not count there.
            if actual > max && actual > before {
                return Err(BrokerError::Limit { what, limit, max, actual });
            }
        }
        Ok(next)
    }
}
