//! One interface to the devices of a running server and of a stopped one's directory.

use crate::client::ServerArgs;
use crate::config::Config;
use crate::registry::Place;

use super::running::Running;
use super::stopped::Stopped;

/// A device to add.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewDevice<'a> {
    pub name: &'a str,
    pub profile: Option<&'a str>,
    pub token: Option<&'a str>,
}

/// An added device.
#[derive(Debug)]
pub(super) struct Added {
    pub token: String,
    /// An earlier device of the same name has left rows, which are this one's now. Only a running server knows.
    pub continues: bool,
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

/// All about one device.
#[derive(Debug)]
pub(super) struct Details {
    pub id: String,
    pub name: String,
    pub profile: String,
    /// Where its rows go.
    pub table: String,
    /// The name of the durability class of its acks.
    pub durability: String,
    pub created_ms: i64,
    /// Known to a running server only.
    pub activity: Option<Activity>,
}

/// What a device has done.
#[derive(Debug)]
pub(super) struct Activity {
    pub keys: u64,
    /// The time of its newest value.
    pub last_ms: Option<i64>,
    pub refused: Option<Refused>,
}

/// What was refused of a device.
#[derive(Debug)]
pub(super) struct Refused {
    /// How many since `since_ms`.
    pub messages: u64,
    pub since_ms: i64,
    pub last_ms: i64,
    pub door: String,
    pub reason: String,
}

/// Somebody who keeps devices.
pub(super) trait Registrar {
    /// Adds a device.
    fn add(&mut self, new: &NewDevice<'_>) -> anyhow::Result<Added>;
    /// Adds many devices: all or none.
    fn add_many(&mut self, many: &Many<'_>) -> anyhow::Result<ManyAdded>;
    /// All devices whose name holds the filter, sorted by name.
    fn list(&mut self, filter: Option<&str>, with_tokens: bool) -> anyhow::Result<Vec<Listed>>;
    /// All about the device of that name.
    fn details(&mut self, name: &str) -> anyhow::Result<Details>;
    /// Deletes a device; returns the table that keeps what it reported, if that is known.
    fn delete(&mut self, name: &str) -> anyhow::Result<Option<String>>;
    /// Gives a device another name.
    fn rename(&mut self, name: &str, new_name: &str) -> anyhow::Result<()>;
    /// The access token of a device.
    fn token(&mut self, name: &str) -> anyhow::Result<String>;
    /// Gives a device another access token, a random one if `token` is `None`; returns it.
    fn set_token(&mut self, name: &str, token: Option<&str>) -> anyhow::Result<String>;
}

/// Devices where the registry is: at a server, or in a directory. See [`registry::open`](crate::registry::open).
pub(super) fn open(server: &ServerArgs, config: &Config, create: bool) -> anyhow::Result<Box<dyn Registrar>> {
    Ok(match crate::registry::open(server, config, create)? {
        Place::Server(api) => Box::new(Running::new(api)),
        Place::Directory(alone) => Box::new(Stopped::new(*alone)),
    })
}

/// The error for a name that no device has.
pub(super) fn no_device(name: &str) -> anyhow::Error {
    anyhow::anyhow!("there is no device \"{name}\"; check the spelling, `tacho device list` shows all")
}
