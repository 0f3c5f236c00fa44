//! Bounds the bytes that clients make the server hold: per connection, per login, per tenant and in total.

use std::collections::HashMap;
use std::sync::Arc;

use hub::Hub;
use hub::caller::Caller;
use model::limits::Portion;
use model::share_of;
use parking_lot::Mutex;
use uuid::Uuid;

/// A bound and its name in a `limits.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) name: &'static str,
    pub(crate) bytes: usize,
}

/// The bounds of one kind of bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The kind of content, such as "prepared statements".
    pub(crate) what: &'static str,
    /// For one [`Share`], such as a connection.
    pub(crate) share: Limit,
    /// For all shares of a login.
    pub(crate) login: Limit,
    /// For all shares. A tenant may have half of what the others leave; the only one all of it ([`share_of`]).
    pub(crate) total: Limit,
}

impl Limits {
    /// Scales the bounds to the memory of this machine.
    pub(crate) fn on(self, memory: Portion) -> Self {
        let of = |limit: Limit| Limit { bytes: memory.of(limit.bytes), ..limit };
        Self { what: self.what, share: of(self.share), login: of(self.login), total: of(self.total) }
    }
}

/// The scope of an exceeded bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Share,
    Login,
    Tenant,
    All,
}

/// The bytes would exceed a bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} of {} would hold {actual} bytes, the limit {} is {}", self.scope_text(), .limit.name, .limit.bytes)]
pub(crate) struct OverBudget {
    pub(crate) what: &'static str,
    pub(crate) scope: Scope,
    pub(crate) limit: Limit,
    pub(crate) actual: usize,
}

impl OverBudget {
    fn scope_text(&self) -> &'static str {
        match self.scope {
            Scope::Share => "this connection",
            Scope::Login => "this login",
            Scope::Tenant => "this tenant",
            Scope::All => "all clients together",
        }
    }
}

/// A budget for one kind of bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    held: Mutex<ReservedBytes>,
}

#[derive(Debug, Default)]
struct ReservedBytes {
    last_share: u64,
    total: usize,
    logins: HashMap<Uuid, usize>,
    tenants: HashMap<Uuid, usize>,
    shares: HashMap<u64, usize>,
}

/// Who holds bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    login: Uuid,
    tenant: Uuid,
    /// The number of tenants of the installation.
    tenants: usize,
}

impl Owner {
    /// The owner of what the server holds for a caller.
    pub(crate) fn of(hub: &Hub, caller: &Caller) -> Self {
        let login = caller.user_id().unwrap_or_default();
        Self { login, tenant: caller.tenant(), tenants: hub.registry().tenant_count() }
    }

    /// A login of the only tenant.
    #[cfg(test)]
    pub(crate) fn login(login: Uuid) -> Self {
        Self { login, tenant: Uuid::nil(), tenants: 1 }
    }
}

/// The share of one connection in a budget.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    number: u64,
    owner: Owner,
}

/// Bytes that are charged until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    share: Arc<Share>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, held: Mutex::default() })
    }

    /// The share of a connection, without bytes.
    pub(crate) fn share(self: &Arc<Self>, owner: Owner) -> Arc<Share> {
        let mut held = self.held.lock();
        held.last_share += 1;
        Arc::new(Share { budget: Arc::clone(self), number: held.last_share, owner })
    }

    fn charge(&self, share: &Share, bytes: usize) -> Result<(), OverBudget> {
        let Limits { what, share: of_share, login: of_login, total: of_all } = self.limits;
        let Owner { login: by, tenant: of, tenants } = share.owner;
        let mut held = self.held.lock();
        let own = held.shares.get(&share.number).copied().unwrap_or_default().saturating_add(bytes);
        let login = held.logins.get(&by).copied().unwrap_or_default().saturating_add(bytes);
        let before = held.tenants.get(&of).copied().unwrap_or_default();
        let tenant = before.saturating_add(bytes);
        let others = held.total.saturating_sub(before) as u64;
        let of_tenant = Limit { bytes: share_of(of_all.bytes as u64, others, tenants) as usize, ..of_all };
        let total = held.total.saturating_add(bytes);
        let bounds = [
            (Scope::Share, of_share, own),
            (Scope::Login, of_login, login),
            (Scope::All, of_all, total),
            (Scope::Tenant, of_tenant, tenant),
        ];
        if let Some((scope, limit, actual)) =
            bounds.into_iter().find(|(_, limit, actual)| *actual > limit.bytes)
        {
            return Err(OverBudget { what, scope, limit, actual });
        }
        held.total = total;
        held.logins.insert(by, login);
        held.tenants.insert(of, tenant);
        held.shares.insert(share.number, own);
        Ok(())
    }

    fn release(&self, share: &Share, bytes: usize) {
        fn subtract<K: std::hash::Hash + Eq>(map: &mut HashMap<K, usize>, key: K, bytes: usize) {
            if let Some(held) = map.get_mut(&key) {
                *held -= bytes;
                if *held == 0 {
                    map.remove(&key);
                }
            }
        }
        let mut held = self.held.lock();
        held.total -= bytes;
        subtract(&mut held.logins, share.owner.login, bytes);
        subtract(&mut held.tenants, share.owner.tenant, bytes);
        subtract(&mut held.shares, share.number, bytes);
    }

    #[cfg(test)]
    pub(crate) fn total(&self) -> usize {
        self.held.lock().total
    }
}

impl Share {
    /// Charges bytes, if all bounds allow it.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Result<Charge, OverBudget> {
        self.budget.charge(self, bytes)?;
        Ok(Charge { share: Arc::clone(self), bytes })
    }
}

impl Charge {
    /// Charges more bytes.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), OverBudget> {
        self.share.budget.charge(&self.share, bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Number of charged bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Splits off some of the bytes, to release them separately.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { share: Arc::clone(&self.share), bytes }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.share.budget.release(&self.share, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> Arc<Budget> {
        let limit = |name, bytes| Limit { name, bytes };
        let (share, login, total) = (limit("SHARE", 10), limit("LOGIN", 15), limit("TOTAL", 20));
        Budget::new(Limits { what: "things", share, login, total })
    }

    #[test]
    fn each_exceeded_bound_is_named_and_bytes_are_released() {
        let budget = budget();
        let [ann, bob] = [1, 2].map(Uuid::from_u128);
        let [one, other, stranger] = [ann, ann, bob].map(|login| budget.share(Owner::login(login)));
        let mut first = one.hold(10).unwrap();
        let refused = first.grow(1).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "things of this connection would hold 11 bytes, the limit SHARE is 10"
        );
        let second = other.hold(5).unwrap();
        assert_eq!(other.hold(1).unwrap_err().scope, Scope::Login);
        let third = stranger.hold(5).unwrap();
        assert_eq!(stranger.hold(1).unwrap_err().limit.name, "TOTAL");
        let part = first.split(4);
        drop(first);
        assert_eq!(budget.total(), 14);
        assert!(one.hold(5).is_ok());
        drop((part, second, third));
        let held = budget.held.lock();
        assert_eq!((held.total, held.logins.len(), held.tenants.len(), held.shares.len()), (0, 0, 0, 0));
    }

    #[test]
    fn a_tenant_leaves_room_for_the_others() {
        let budget = budget();
        let owner = |login: u128, tenant: u128| Owner {
            login: Uuid::from_u128(login),
            tenant: Uuid::from_u128(tenant),
            tenants: 2,
        };
        let [first, second, other] = [owner(1, 8), owner(2, 8), owner(3, 9)].map(|owner| budget.share(owner));
        let _held = (first.hold(6).unwrap(), second.hold(4).unwrap());
        let refused = second.hold(1).unwrap_err();
        assert_eq!((refused.scope, refused.limit.bytes, refused.actual), (Scope::Tenant, 10, 11));
        assert!(refused.to_string().starts_with("things of this tenant"), "{refused}");
        other.hold(5).unwrap();
    }
}
