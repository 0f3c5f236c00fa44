//! Opens the registry of a data directory, or finds the server that has it.

use std::path::Path;

use hub::registry::Registry;
use store_local::DiskLock;

use super::access::{Access, is_held_by_server};
use super::layout::{REGISTRY_FILE, create_directory};
use super::lock::lock;
use crate::client::ServerArgs;
use crate::config::Config;
use crate::output::Audience;

/// An open registry and the lock of its directory: no server starts on the directory until both are dropped.
pub(crate) struct LockedRegistry {
    pub(crate) registry: Registry,
    _lock: Box<dyn DiskLock>,
}

impl LockedRegistry {
    /// Locks a data directory and opens its registry. Creates both if they do not exist.
    fn open(config: &Config) -> anyhow::Result<Self> {
        create_directory(&config.data)?;
        let lock = lock(&config.data)?;
        // The first start of a server sets and prints the administrator's password, so it is not kept here.
        let (registry, _first_start) = Registry::open(&config.data.join(REGISTRY_FILE))?;
        Ok(Self { registry, _lock: lock })
    }
}

/// The registry of a directory, or a client of the server that has it or that `--url` names.
///
/// A directory that does not exist is created if `create` allows it. The directory's lock decides whether a server runs.
pub(crate) fn registry_access(
    server: &ServerArgs,
    config: &Config,
    create: bool,
) -> anyhow::Result<Access<LockedRegistry>> {
    if server.url.is_none() && !create && !config.data.exists() {
        anyhow::bail!("there is no data directory {}; name one with --data", config.data.display());
    }
    if server.url.is_none() {
        match LockedRegistry::open(config) {
            Ok(locked) => return Ok(Access::Directory(locked)),
            Err(error) if is_held_by_server(&error, config) => {}
            Err(error) => return Err(error),
        }
    }
    let api = server.find(config)?;
    server.log_in(&api, config)?;
    Ok(Access::Server(api))
}

/// Opens the registry of a directory whose lock this process holds already. The first time, it tells the audience the
/// administrator's password.
pub(crate) fn open_registry(data: &Path, audience: Audience) -> anyhow::Result<Registry> {
    let (registry, first_start) = Registry::open(&data.join(REGISTRY_FILE))?;
    if let Some(first) = first_start {
        let path = first.keep(&registry, data)?;
        audience.tell(format_args!(
            "administrator {}  password {}  (kept in {})",
            first.login,
            first.password,
            path.display()
        ));
    }
    Ok(registry)
}
