//! The registry of a data directory: asked through the server that runs on it, or opened alone where none does.

use hub::registry::Registry;
use store::StoreError;
use store_local::DiskLock;

use crate::client::{Api, RuntimeFile, ServerArgs};
use crate::config::Config;
use crate::server::{REGISTRY_FILE, create_directory, lock};

/// Where the registry is asked.
pub(crate) enum Place {
    /// A running server, logged in.
    Server(Api),
    /// The directory of a stopped one.
    Directory(Box<Alone>),
}

/// A registry opened for us alone: no server can start on the directory until we are done.
pub(crate) struct Alone {
    pub(crate) registry: Registry,
    /// Keeps servers away as long as the registry is used.
    pub(crate) lock: Box<dyn DiskLock>,
}

impl Alone {
    /// Opens the registry of a data directory; creates both if they are not there.
    fn open(config: &Config) -> anyhow::Result<Self> {
        create_directory(&config.data)?;
        let lock = lock(&config.data)?;
        // The administrator's first password is not ours to keep: the first start of the server makes its own.
        let (registry, _first_start) = Registry::open(&config.data.join(REGISTRY_FILE))?;
        Ok(Self { registry, lock })
    }

    /// Whether `open` failed because a server has the directory.
    fn is_in_use(error: &anyhow::Error) -> bool {
        matches!(error.downcast_ref(), Some(StoreError::InUse { .. }))
    }
}

/// The server that was named, the one that runs on the directory, or the directory itself.
///
/// A directory that is not there is created if `create` allows it. The directory's lock decides between the last two: a
/// file of a server that was killed proves nothing.
pub(crate) fn open(server: &ServerArgs, config: &Config, create: bool) -> anyhow::Result<Place> {
    if server.url.is_none() && !create && !config.data.exists() {
        anyhow::bail!("there is no data directory {}; name one with --data", config.data.display());
    }
    if server.url.is_none() {
        match Alone::open(config) {
            Ok(alone) => return Ok(Place::Directory(Box::new(alone))),
            Err(error) if Alone::is_in_use(&error) && RuntimeFile::path(&config.data).exists() => {}
            Err(error) => return Err(error),
        }
    }
    let mut api = server.find(config)?;
    server.log_in(&mut api, config)?;
    Ok(Place::Server(api))
}
