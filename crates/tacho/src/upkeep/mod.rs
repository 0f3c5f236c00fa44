//! `tacho check`, `tacho backup`, `tacho restore`: care for a data directory, stopped or served.

mod backup;
mod check;
mod directory;
mod restore;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use hub::Metrics;
use store::{Store, StoreError};

use crate::client::{Api, RuntimeFile, ServerArgs};
use crate::config::Config;
use crate::server::{Use, check_access, create_directory, open};

pub(crate) use backup::BackupArgs;
pub(crate) use backup::run as back_up;
pub(crate) use check::CheckArgs;
pub(crate) use check::run as check;
pub(crate) use directory::make;
pub(crate) use restore::RestoreArgs;
pub(crate) use restore::run as restore;

/// The store's directory in a data directory.
fn store_directory(data: &Path) -> PathBuf {
    data.join(store::backup::STORE_DIRECTORY)
}

/// Does `stopped` on the directory, unless a server was named or has it; then gives a client of that, logged in.
///
/// The directory's lock decides: a file of a server that was killed proves nothing.
pub(crate) fn stopped_or_running<T>(
    server: &ServerArgs,
    config: &Config,
    stopped: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<Result<T, Api>> {
    if server.url.is_none() {
        check_access(&config.data, Use::Read)?;
        directory::check(&config.data)?;
        match stopped() {
            Err(error) if is_in_use(&error) && RuntimeFile::path(&config.data).exists() => {}
            done => return done.map(Ok),
        }
    }
    let mut api = server.find(config)?;
    let logged_in = server.log_in(&mut api, config);
    match server.url {
        Some(_) => logged_in?,
        None => logged_in.context("the server has to be asked, because it has the directory")?,
    }
    Ok(Err(api))
}

/// Opens the store of a directory that nobody has, as a server would.
pub(crate) fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    create_directory(&config.data)?;
    Ok(open(config, &Arc::new(Metrics::new()))?)
}

fn is_in_use(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(StoreError::InUse { .. }))
}
