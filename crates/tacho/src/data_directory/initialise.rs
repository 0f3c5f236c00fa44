//! Creates a data directory without a server, for commands with `--create`.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::Context;
use hub::registry::Registry;

use super::layout::{REGISTRY_FILE, create_directory, store_directory};
use super::lock::lock;

/// Creates a data directory with an empty store and a registry, if they do not exist.
pub(crate) fn initialise(data: &Path) -> anyhow::Result<()> {
    create_directory(data)?;
    let (store, registry) = (store_directory(data), data.join(REGISTRY_FILE));
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&store);
    made.with_context(|| format!("cannot create {}", store.display()))?;
    if !registry.exists() {
        let _lock = lock(data)?;
        // The first start of a server sets and prints the administrator's password, so it is not kept here.
        let (_registry, _first_start) = Registry::open(&registry)?;
    }
    Ok(())
}
