//! One interface to the devices of a running server and of a stopped one's directory.

use crate::client::{RuntimeFile, ServerArgs};
use crate::config::Config;

use super::running::Running;
use super::stopped::Stopped;

/// A device to add.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewDevice<'a> {
    pub name: &'a str,
    pub profile: Option<&'a str>,
    pub token: Option<&'a str>,
}

/// Many devices to add.
#[derive(Debug, Clone, Copy)]
pub(super) struct Many<'a> {
    pub count: u32,
    pub prefix: &'a str,
    pub token_prefix: Option<&'a str>,
    pub profile: Option<&'a str>,
    pub existing_ok: bool,
    /// Whether names and tokens are wanted.
    pub list: bool,
}

/// What became of them.
#[derive(Debug, Default)]
pub(super) struct ManyAdded {
    pub created: u64,
    pub existing: u64,
    /// Name and token of each, if they were asked for.
    pub tokens: Vec<(String, String)>,
}

/// A device as it is listed.
#[derive(Debug)]
pub(super) struct Listed {
    pub name: String,
    pub profile: String,
    /// RFC 3339, in whole seconds.
    pub created: String,
    pub token: Option<String>,
}

/// Somebody who keeps devices.
pub(super) trait Registrar {
    /// Adds a device and returns its token.
    fn add(&mut self, new: &NewDevice<'_>) -> anyhow::Result<String>;
    /// Adds many devices: all or none.
    fn add_many(&mut self, many: &Many<'_>) -> anyhow::Result<ManyAdded>;
    /// All devices whose name holds the filter, sorted by name.
    fn list(&mut self, filter: Option<&str>, with_tokens: bool) -> anyhow::Result<Vec<Listed>>;
}

/// The server that was named, the one that runs on the directory, or the directory itself.
///
/// A directory that is not there is created for the first device, and an error for a listing. The directory's lock decides between the last two: a file of a server that was killed proves nothing.
pub(super) fn open(server: &ServerArgs, config: &Config, create: bool) -> anyhow::Result<Box<dyn Registrar>> {
    if server.url.is_none() && !create && !config.data.exists() {
        anyhow::bail!("there is no data directory {}; name one with --data", config.data.display());
    }
    if server.url.is_none() {
        match Stopped::open(config) {
            Ok(stopped) => return Ok(Box::new(stopped)),
            Err(error) if Stopped::is_in_use(&error) && RuntimeFile::path(&config.data).exists() => {}
            Err(error) => return Err(error),
        }
    }
    let mut api = server.find(config)?;
    server.log_in(&mut api, config)?;
    Ok(Box::new(Running::new(api)))
}

/// A time as it is listed.
pub(super) fn created(milliseconds: i64) -> String {
    match jiff::Timestamp::from_millisecond(milliseconds) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => format!("{milliseconds} ms"),
    }
}
