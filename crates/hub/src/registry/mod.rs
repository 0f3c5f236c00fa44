//! Tenants, users, devices, profiles and their credentials.
//!
//! One SQLite file holds them (write-ahead log, every commit synced); an index in memory answers all questions, so no
//! lookup touches the file. Not here: the rows that devices report, which are the store's.
//!
//! Invariants:
//! 1. A change is in the index only after its commit, and both happen under the lock of the one writer.
//! 2. While a registry is open nobody else can write the file (SQLite's exclusive locking mode).
//! 3. A name is unique in its tenant; an access token and a login are unique in the installation.
//!
//! Everything that changes something waits for the disk, and everything with a password takes tens of milliseconds of
//! a core: async callers use a blocking thread.

mod devices;
mod entity;
mod error;
mod file;
mod first_start;
mod index;
mod maintenance;
mod password;
mod profiles;
mod random;
#[cfg(test)]
mod tests;
mod users;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use model::Timestamp;
use parking_lot::{Mutex, MutexGuard, RwLock};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::watch;
use uuid::Uuid;

pub use entity::{
    Authority, BulkDevices, Device, NewDevice, Page, PageRequest, Profile, Provisioned, Tenant, User,
};
pub use error::RegistryError;
pub use first_start::{ADMIN_PASSWORD_FILE, FirstStart};
pub use maintenance::{copy_for_backup, problems_of};

use crate::session_token::SessionTokens;
use index::Index;
use password::Passwords;

/// Name of the tenant and of the profile that every installation has.
pub const DEFAULT_NAME: &str = "default";

/// The table that devices of the default profile write to.
pub const DEFAULT_TABLE: &str = "telemetry";

/// The setting that holds the key of session tokens.
const SESSION_SECRET: &str = "session_secret";

/// The setting that holds the last time of receipt.
const LAST_RECEIPT: &str = "last_receipt_us";

/// Login of the administrator that the first start creates.
pub const ADMIN_LOGIN: &str = "admin@tachograph.local";

/// The registry of an installation. Share it behind an `Arc` or by reference; all methods take `&self`.
pub struct Registry {
    path: PathBuf,
    writer: Mutex<Connection>,
    index: RwLock<Index>,
    generation: AtomicU64,
    default_tenant: Uuid,
    passwords: Passwords,
    sessions: RwLock<SessionTokens>,
    /// Counts what may have ended sessions.
    session_changes: watch::Sender<u64>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Registry {
    /// Opens the registry in the file `path`; creates it, with a tenant, a profile and an administrator, if it is
    /// missing.
    ///
    /// The [`FirstStart`] holds the administrator's password. It comes with every opening, each time with a new
    /// password, until [`FirstStart::keep`] has written it down or somebody has set another one: a crash in between
    /// locks nobody out.
    pub fn open(path: &Path) -> Result<(Self, Option<FirstStart>), RegistryError> {
        let connection = file::open(path)?;
        let index = file::load(&connection, path)?;
        let missing = |reason: &str| RegistryError::NotARegistry { path: path.into(), reason: reason.into() };
        let secret: Vec<u8> = file::setting(&connection, path, SESSION_SECRET)?
            .ok_or_else(|| missing("the key of the sessions is gone"))?;
        let default_tenant = index.tenants.iter().find(|tenant| tenant.name == DEFAULT_NAME);
        let default_tenant = default_tenant.ok_or_else(|| missing("the default tenant is gone"))?.id;
        let admin_pending: Option<String> = file::setting(&connection, path, "admin_pending")?;
        let registry = Self {
            path: path.into(),
            writer: Mutex::new(connection),
            index: RwLock::new(index),
            generation: AtomicU64::new(0),
            default_tenant,
            passwords: Passwords::default(),
            sessions: RwLock::new(SessionTokens::new(&secret)),
            session_changes: watch::Sender::new(0),
        };
        let first_start = admin_pending.map(|login| FirstStart::begin(&registry, login)).transpose()?;
        Ok((registry, first_start))
    }

    /// The tenant that every installation has, and so far the only one.
    pub fn default_tenant(&self) -> Uuid {
        self.default_tenant
    }

    /// All tenants.
    pub fn tenants(&self) -> Vec<Tenant> {
        self.index.read().tenants.clone()
    }

    /// A number that grows whenever something a door may have kept is no longer true: a device was deleted or
    /// renamed, its token replaced or its profile changed. Looking is cheap; look devices up again when it differs.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The last time of receipt that a former process gave out, if it ended in order.
    pub(crate) fn last_receipt(&self) -> Result<Option<Timestamp>, RegistryError> {
        let micros = file::setting(&self.writer.lock(), &self.path, LAST_RECEIPT)?;
        Ok(micros.map(Timestamp::from_micros))
    }

    /// Keeps that time for the next process.
    pub(crate) fn keep_last_receipt(&self, last: Timestamp) -> Result<(), RegistryError> {
        self.commit(&mut self.writer.lock(), "keep the last time of receipt", |transaction| {
            keep_setting(transaction, LAST_RECEIPT, last.micros())
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `change` in a transaction and makes it durable. The caller holds the writer's lock from its checks until
    /// the index shows the change.
    fn commit(
        &self,
        writer: &mut MutexGuard<'_, Connection>,
        what: &'static str,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), RegistryError> {
        let run = |writer: &mut Connection| {
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            change(&transaction)?;
            transaction.commit()
        };
        run(writer).map_err(RegistryError::sqlite(what, &self.path))
    }

    /// Tells the doors that what they kept may be untrue. After the index shows the change, or they would keep the old
    /// value under the new number.
    fn forget_cached(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

/// Replaces a value of the installation.
fn keep_setting(
    transaction: &Transaction<'_>,
    key: &str,
    value: impl rusqlite::ToSql,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO setting (key, value) VALUES (?1, ?2) \
               ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    transaction.execute(sql, (key, value))?;
    Ok(())
}
