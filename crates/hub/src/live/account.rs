//! Bytes that live subscribers have not read: counted for each connection, for each login and in total. When a bound is
//! exceeded, the server gives up the connection that holds most; for the bound of all connections, the one of the tenant that holds most.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use model::limits::{LIVE_BYTES_MAX, LIVE_CONNECTION_BYTES_MAX, LIVE_LOGIN_BYTES_MAX, Portion};
use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

/// Why the server gave a connection up. The text fits into a WebSocket close frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{whose} left {actual} bytes of updates unread, {limit} is {bytes}; read faster or watch less")]
pub struct Overrun {
    /// The connection, the login or all connections.
    pub whose: &'static str,
    /// Name of the limit.
    pub limit: &'static str,
    /// Value of the limit.
    pub bytes: usize,
    /// Unread bytes.
    pub actual: usize,
}

/// Unread updates whose bytes are counted for a connection.
pub(super) trait Unread: std::fmt::Debug + Send + Sync {
    /// Drops the updates and releases their bytes.
    fn discard(&self);
}

/// Bounds of unread bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) connection: usize,
    pub(super) login: usize,
    pub(super) total: usize,
}

impl Limits {
    /// Scales the bounds to the memory of this machine.
    fn on(self, memory: Portion) -> Self {
        let Self { connection, login, total } = self;
        Self { connection: memory.of(connection), login: memory.of(login), total: memory.of(total) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let (connection, login) = (LIVE_CONNECTION_BYTES_MAX, LIVE_LOGIN_BYTES_MAX);
        Self { connection, login, total: LIVE_BYTES_MAX }
    }
}

/// Unread bytes of all connections. An update counts once for each connection that has not read it, so the bytes in memory
/// are at most the counted ones.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    total: usize,
    logins: HashMap<Uuid, usize>,
    tenants: HashMap<Uuid, usize>,
    /// Connections that were not given up.
    connections: HashMap<u64, Holder>,
}

#[derive(Debug)]
struct Holder {
    login: Uuid,
    tenant: Uuid,
    bytes: usize,
    unread: Vec<Weak<dyn Unread>>,
    over: watch::Sender<Option<Overrun>>,
}

/// The account of one connection, until this is dropped.
#[derive(Debug)]
pub(super) struct Account {
    accounts: Arc<Accounts>,
    id: u64,
    over: watch::Receiver<Option<Overrun>>,
}

impl Accounts {
    /// With the default bounds, scaled to the memory of this machine.
    pub(super) fn on(memory: Portion) -> Self {
        Self { limits: Limits::default().on(memory), state: Mutex::default() }
    }

    #[cfg(test)]
    pub(super) fn with_limits(limits: Limits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    /// Opens the account of a connection without unread bytes.
    pub(super) fn open(self: &Arc<Self>, login: Uuid, tenant: Uuid) -> Account {
        let (over, receiver) = watch::channel(None);
        let mut state = self.state.lock();
        state.last_id += 1;
        let id = state.last_id;
        state.connections.insert(id, Holder { login, tenant, bytes: 0, unread: Vec::new(), over });
        Account { accounts: Arc::clone(self), id, over: receiver }
    }

    #[cfg(test)]
    pub(super) fn total(&self) -> usize {
        self.state.lock().total
    }
}

impl Account {
    /// Adds a mailbox whose bytes count for the connection.
    pub(super) fn add<U: Unread + 'static>(&self, unread: &Arc<U>) {
        if let Some(holder) = self.accounts.state.lock().connections.get_mut(&self.id) {
            holder.unread.retain(|other| other.strong_count() > 0);
            let unread: Weak<U> = Arc::downgrade(unread);
            holder.unread.push(unread);
        }
    }

    /// Waits until the server gives the connection up.
    pub(super) async fn overrun(&self) -> Overrun {
        let mut over = self.over.clone();
        loop {
            if let Some(overrun) = &*over.borrow_and_update() {
                return overrun.clone();
            }
            if over.changed().await.is_err() {
                // The sender ends only with the account.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether the connection was given up.
    pub(super) fn is_over(&self) -> bool {
        self.over.borrow().is_some()
    }

    /// Adds unread bytes; returns whether a limit is now exceeded.
    pub(super) fn charge(&self, bytes: usize) -> bool {
        let limits = self.accounts.limits;
        let mut state = self.accounts.state.lock();
        let Some(own) = state.add(self.id, bytes as isize) else { return false };
        own.connection > limits.connection || own.login > limits.login || state.total > limits.total
    }

    /// Subtracts bytes that are no longer unread.
    pub(super) fn release(&self, bytes: usize) {
        if bytes > 0 {
            self.accounts.state.lock().add(self.id, -(bytes as isize));
        }
    }

    /// Gives up connections until the limits hold: this one if it exceeds its own limit, else the largest ones.
    pub(super) fn enforce(&self) {
        let limits = self.accounts.limits;
        let mut given_up = Vec::new();
        {
            let mut state = self.accounts.state.lock();
            let Some(Holder { login, bytes, .. }) = state.connections.get(&self.id) else { return };
            let (login, bytes) = (*login, *bytes);
            if bytes > limits.connection {
                let (whose, limit) = ("this connection", "LIVE_CONNECTION_BYTES_MAX");
                let overrun = Overrun { whose, limit, bytes: limits.connection, actual: bytes };
                given_up.extend(state.give_up(self.id, overrun));
            }
            while let Some(actual) = state.logins.get(&login).copied().filter(|held| *held > limits.login) {
                let Some(largest) = state.largest(|holder| holder.login == login) else { break };
                let (whose, limit) = ("your login", "LIVE_LOGIN_BYTES_MAX");
                let overrun = Overrun { whose, limit, bytes: limits.login, actual };
                given_up.extend(state.give_up(largest, overrun));
            }
            while state.total > limits.total {
                let tenant = state.greediest_tenant();
                let Some(largest) = state.largest(|holder| Some(holder.tenant) == tenant) else { break };
                let (whose, limit, actual) = ("all together", "LIVE_BYTES_MAX", state.total);
                let overrun = Overrun { whose, limit, bytes: limits.total, actual };
                given_up.extend(state.give_up(largest, overrun));
            }
        }
        // After the lock is released: a mailbox holds its own lock while it counts bytes here.
        given_up.iter().filter_map(Weak::upgrade).for_each(|unread| unread.discard());
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.accounts.state.lock().remove(self.id);
    }
}

/// Unread bytes of a connection and of its login.
struct UnreadBytes {
    connection: usize,
    login: usize,
}

impl State {
    /// Adds bytes to a connection; `None` if it was given up.
    fn add(&mut self, id: u64, bytes: isize) -> Option<UnreadBytes> {
        let holder = self.connections.get_mut(&id)?;
        holder.bytes = holder.bytes.saturating_add_signed(bytes);
        self.total = self.total.saturating_add_signed(bytes);
        let login = self.logins.entry(holder.login).or_default();
        *login = login.saturating_add_signed(bytes);
        let tenant = self.tenants.entry(holder.tenant).or_default();
        *tenant = tenant.saturating_add_signed(bytes);
        if *tenant == 0 {
            self.tenants.remove(&holder.tenant);
        }
        let held = UnreadBytes { connection: holder.bytes, login: *login };
        if held.login == 0 {
            self.logins.remove(&holder.login);
        }
        Some(held)
    }

    /// The tenant whose connections hold most.
    fn greediest_tenant(&self) -> Option<Uuid> {
        self.tenants.iter().max_by_key(|(_, bytes)| **bytes).map(|(tenant, _)| *tenant)
    }

    fn largest(&self, among: impl Fn(&Holder) -> bool) -> Option<u64> {
        let holders = self.connections.iter().filter(|(_, holder)| among(holder) && holder.bytes > 0);
        holders.max_by_key(|(_, holder)| holder.bytes).map(|(id, _)| *id)
    }

    /// Removes a connection and signals its overrun; returns its mailboxes.
    fn give_up(&mut self, id: u64, overrun: Overrun) -> Vec<Weak<dyn Unread>> {
        let Some(holder) = self.remove(id) else { return Vec::new() };
        holder.over.send_replace(Some(overrun));
        holder.unread
    }

    fn remove(&mut self, id: u64) -> Option<Holder> {
        let bytes = self.connections.get(&id)?.bytes;
        self.add(id, -(bytes as isize));
        self.connections.remove(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACME: Uuid = Uuid::from_u128(8);
    const OTHER: Uuid = Uuid::from_u128(9);
    const LIMITS: Limits = Limits { connection: 10, login: 15, total: 25 };

    fn over(account: &Account) -> Option<&'static str> {
        account.over.borrow().as_ref().map(|overrun| overrun.limit)
    }

    #[test]
    fn the_largest_holder_is_closed_first_and_its_bytes_are_released() {
        let accounts = Arc::new(Accounts::with_limits(LIMITS));
        let [ann, bob, eve] = [1, 2, 3].map(Uuid::from_u128);
        let one = accounts.open(ann, ACME);
        assert!(!one.charge(10));
        assert!(one.charge(1));
        one.enforce();
        assert_eq!((over(&one), accounts.total()), (Some("LIVE_CONNECTION_BYTES_MAX"), 0));
        assert!(!one.charge(100), "who was given up holds nothing");

        let (small, large) = (accounts.open(ann, ACME), accounts.open(ann, ACME));
        assert!(!large.charge(9));
        assert!(small.charge(7));
        small.enforce();
        assert_eq!((over(&small), over(&large)), (None, Some("LIVE_LOGIN_BYTES_MAX")));

        let (third, fourth) = (accounts.open(bob, ACME), accounts.open(eve, ACME));
        assert!(!third.charge(10) && fourth.charge(9));
        fourth.enforce();
        assert_eq!((over(&small), over(&third), over(&fourth)), (None, Some("LIVE_BYTES_MAX"), None));
        small.release(7);
        drop(fourth);
        assert_eq!(accounts.total(), 0);
        let state = accounts.state.lock();
        assert!(state.logins.is_empty() && state.tenants.is_empty());
    }

    #[test]
    fn the_tenant_that_holds_most_loses_a_connection_first() {
        let accounts = Arc::new(Accounts::with_limits(LIMITS));
        let logins = [1, 2, 3, 4].map(Uuid::from_u128);
        let acme = [0, 1, 2].map(|n| accounts.open(logins[n], ACME));
        let other = accounts.open(logins[3], OTHER);
        assert!(!acme[0].charge(6) && !acme[1].charge(5) && !acme[2].charge(5));
        assert!(!other.charge(9), "the largest connection, but not of the largest tenant");
        assert!(acme[1].charge(1));
        acme[1].enforce();
        let given_up = acme.iter().filter(|one| over(one) == Some("LIVE_BYTES_MAX")).count();
        assert_eq!((given_up, over(&other)), (1, None));
    }

    #[test]
    fn the_reason_fits_into_a_close_frame() {
        let (whose, limit, bytes) =
            ("this connection", "LIVE_CONNECTION_BYTES_MAX", LIVE_CONNECTION_BYTES_MAX);
        let text = Overrun { whose, limit, bytes, actual: bytes + 1 }.to_string();
        assert!(text.len() <= 130, "{}: {text}", text.len());
    }
}
