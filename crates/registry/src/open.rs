//! Opens a registry.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use parking_lot::{Mutex, RwLock};

use super::creation_queue::CreationQueue;
use super::error::RegistryError;
use super::file;
use super::first_start::FirstStart;
use super::handle::Registry;
use super::load::load;
use super::password::Passwords;
use super::settings::{SESSION_SECRET, setting};
use crate::session_token::SessionTokens;

impl Registry {
    /// Opens the registry in the file `path`; creates it, with a tenant, a profile and an administrator, if it is
    /// missing.
    ///
    /// The [`FirstStart`] holds the administrator's password. Every opening returns one, each time with a new password, until
    /// [`FirstStart::keep`] has written it down or a user has set another one. So a crash in between locks nobody out.
    pub fn open(path: &Path) -> Result<(Self, Option<FirstStart>), RegistryError> {
        let connection = file::open(path)?;
        let index = load(&connection, path)?;
        let missing = |reason: &str| RegistryError::NotARegistry { path: path.into(), reason: reason.into() };
        let secret: Vec<u8> = setting(&connection, path, SESSION_SECRET)?
            .ok_or_else(|| missing("the key of the sessions is gone"))?;
        let default_tenant = index.default_tenant();
        let default_tenant = default_tenant.ok_or_else(|| missing("the default tenant is gone"))?.id;
        let admin_pending: Option<String> = setting(&connection, path, "admin_pending")?;
        let registry = Self {
            path: path.into(),
            writer: Mutex::new(connection),
            creations: CreationQueue::default(),
            index: RwLock::new(index),
            generation: AtomicU64::new(0),
            topics_generation: AtomicU64::new(0),
            default_tenant,
            passwords: Passwords::default(),
            sessions: RwLock::new(SessionTokens::new(&secret)),
            session_listeners: RwLock::default(),
        };
        let first_start = admin_pending.map(|login| FirstStart::begin(&registry, login)).transpose()?;
        Ok((registry, first_start))
    }
}
