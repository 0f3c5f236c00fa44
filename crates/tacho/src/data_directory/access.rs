//! How a command gets at a data directory: by itself while no server runs on it, through the server otherwise.

use std::time::Duration;

use anyhow::Context;
use store::StoreError;

use super::contents;
use super::permission::{self, Permission};
use crate::client::{Api, RuntimeFile, ServerArgs};
use crate::config::Config;
use crate::limits::REQUEST_TIMEOUT;

/// The two ways to the data of a directory.
pub(crate) enum Access<T> {
    /// The command has opened the directory itself.
    Directory(T),
    /// A server has the directory. The client is logged in.
    Server(Api),
}

/// Calls `open` on the directory, unless `--url` names a server or a server has the directory; then logs in there.
///
/// The directory's lock decides: the runtime file of a killed server is not proof of a running one.
pub(crate) fn directory_or_server<T>(
    server: &ServerArgs,
    config: &Config,
    open: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<Access<T>> {
    directory_or_server_within(server, config, REQUEST_TIMEOUT, open)
}

/// The same with another limit of the time for a request to the server.
pub(crate) fn directory_or_server_within<T>(
    server: &ServerArgs,
    config: &Config,
    timeout: Duration,
    open: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<Access<T>> {
    if server.url.is_none() {
        permission::check(&config.data, Permission::Read)?;
        contents::check(&config.data)?;
        match open() {
            Err(error) if is_held_by_server(&error, config) => {}
            opened => return opened.map(Access::Directory),
        }
    }
    let api = server.find_within(config, timeout)?;
    let logged_in = server.log_in(&api, config);
    match server.url {
        Some(_) => logged_in?,
        None => logged_in.context("ask the server, because it has the directory")?,
    }
    Ok(Access::Server(api))
}

/// Whether opening failed because a running server has the directory.
pub(super) fn is_held_by_server(error: &anyhow::Error, config: &Config) -> bool {
    matches!(error.downcast_ref(), Some(StoreError::InUse { .. })) && RuntimeFile::path(&config.data).exists()
}
