//! The registry object: its lock, its index and its transactions.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use model::Timestamp;
use parking_lot::{Mutex, MutexGuard, RwLock};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use uuid::Uuid;

use super::creation_queue::CreationQueue;
use super::error::RegistryError;
use super::index::Index;
use super::password::Passwords;
use super::settings::{LAST_RECEIPT, keep_setting, setting};
use crate::session_token::SessionTokens;

/// The registry of an installation. All methods take `&self`; share it behind an `Arc` or by reference.
pub struct Registry {
    pub(super) path: PathBuf,
    pub(super) writer: Mutex<Connection>,
    pub(super) creations: CreationQueue,
    pub(super) index: RwLock<Index>,
    pub(super) generation: AtomicU64,
    /// Grows when the topics change that devices of a profile may use.
    pub(super) topics_generation: AtomicU64,
    pub(super) default_tenant: Uuid,
    pub(super) passwords: Passwords,
    pub(super) sessions: RwLock<SessionTokens>,
    /// What to call after every change that may end sessions.
    pub(super) session_listeners: RwLock<Vec<SessionListener>>,
}

/// A function that hears of changes that may end sessions.
pub(super) type SessionListener = Box<dyn Fn() + Send + Sync>;

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Registry {
    /// The tenant that every installation has.
    pub fn default_tenant(&self) -> Uuid {
        self.default_tenant
    }

    /// A number that grows whenever a cached device may be out of date: the device was deleted or renamed, its token was
    /// replaced or its profile changed. Reading it is cheap; look devices up again if it differs.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// A number that grows whenever the topics change that devices of a profile may use.
    pub fn topics_generation(&self) -> u64 {
        self.topics_generation.load(Ordering::Acquire)
    }

    /// The last receipt time of the former process, if that process stopped cleanly.
    pub fn last_receipt(&self) -> Result<Option<Timestamp>, RegistryError> {
        let micros = setting(&self.writer.lock(), &self.path, LAST_RECEIPT)?;
        Ok(micros.map(Timestamp::from_micros))
    }

    /// Stores the last receipt time for the next process.
    pub fn keep_last_receipt(&self, last: Timestamp) -> Result<(), RegistryError> {
        self.commit(&mut self.writer.lock(), "keep the last time of receipt", |transaction| {
            keep_setting(transaction, LAST_RECEIPT, last.micros())
        })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `change` in a transaction and makes it durable. The caller holds the writer's lock from its checks until
    /// the index shows the change.
    pub(super) fn commit(
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

    /// Invalidates devices and series that the doors have cached. Call it after the index or the store shows the change; otherwise a door could
    /// cache the old value under the new number.
    pub fn forget_cached(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}
