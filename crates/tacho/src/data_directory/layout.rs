//! The files of a data directory, and the directory itself.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::permission::{self, Permission};

/// The registry's file in a data directory.
pub(crate) const REGISTRY_FILE: &str = "registry.sqlite";

/// The directory of the key-value engine.
pub(crate) fn keys_directory(data: &Path) -> PathBuf {
    data.join("keys")
}

/// The store's directory in a data directory.
pub(crate) fn store_directory(data: &Path) -> PathBuf {
    data.join(store::backup::STORE_DIRECTORY)
}

/// Creates a data directory that only its owner may enter. An existing directory stays as it is.
///
/// # Errors
/// If this user may not change the directory, or its restore was not finished.
pub(crate) fn create_directory(data: &Path) -> anyhow::Result<()> {
    permission::check(data, Permission::Read)?;
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data);
    created.with_context(|| format!("cannot create the data directory {}", data.display()))?;
    permission::check(data, Permission::Change)
}
