//! Opens the key-value engine of a data directory.

use std::path::Path;

use anyhow::Context as _;
use kv::{EngineOptions, EngineStore};

use super::layout::keys_directory;

/// Opens the key-value engine of a directory whose lock this process holds already. A directory of an earlier version has none
/// and gets an empty one.
pub(crate) fn open_keys(data: &Path) -> anyhow::Result<EngineStore> {
    let directory = keys_directory(data);
    EngineStore::open(&directory, &EngineOptions::default())
        .with_context(|| format!("cannot open the key-value engine in {}", directory.display()))
}
