//! The file in the data directory with the addresses of the running server, for other commands.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::client::RuntimeFile;

/// Keeps the runtime file in the data directory until it is dropped.
#[derive(Debug)]
pub(super) struct RuntimeFileGuard {
    path: PathBuf,
}

impl RuntimeFileGuard {
    pub(super) fn write(data: &Path, runtime: &RuntimeFile) -> anyhow::Result<Self> {
        let path = RuntimeFile::path(data);
        let written = runtime.write(data);
        written.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path })
    }
}

impl Drop for RuntimeFileGuard {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove; commands find out that nobody serves there");
        }
    }
}
