//! One interface to the devices of a running server and of a data directory without one.

/// A device to add.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewDevice<'a> {
    pub name: &'a str,
    pub profile: Option<&'a str>,
    pub token: Option<&'a str>,
    /// Whether it speaks for devices behind it.
    pub gateway: bool,
}

#[derive(Debug)]
pub(super) struct Added {
    pub token: String,
    /// Whether an earlier device of this name has left rows, which now belong to this one. `false` without a running server.
    pub continues: bool,
}

/// BulkAdd devices to add.
#[derive(Debug, Clone, Copy)]
pub(super) struct BulkAdd<'a> {
    pub count: u32,
    pub prefix: &'a str,
    pub token_prefix: Option<&'a str>,
    pub profile: Option<&'a str>,
    pub existing_ok: bool,
    /// Whether the result lists names and tokens.
    pub list: bool,
}

/// The result of adding many devices.
#[derive(Debug, Default)]
pub(super) struct BulkAdded {
    pub created: u64,
    pub existing: u64,
    /// Name and token of each, if [`BulkAdd::list`] is set. A device that was there already may have other credentials.
    pub tokens: Vec<(String, Option<String>)>,
}

/// A device in a list.
#[derive(Debug)]
pub(super) struct Listed {
    pub name: String,
    pub profile: String,
    /// RFC 3339, in whole seconds.
    pub created: String,
    /// `None` if it was not asked for, and for a device with other credentials.
    pub token: Option<String>,
}

/// Everything about one device.
#[derive(Debug)]
pub(super) struct Details {
    pub id: String,
    pub name: String,
    pub profile: String,
    /// Whether it speaks for devices behind it.
    pub gateway: bool,
    /// The table with its rows.
    pub table: String,
    /// The name of the durability class of its acks.
    pub durability: String,
    pub created_ms: i64,
    /// `None` without a running server.
    pub activity: Option<Activity>,
}

/// The values that a device has reported.
#[derive(Debug)]
pub(super) struct Activity {
    pub keys: u64,
    /// The time of its newest value.
    pub last_ms: Option<i64>,
    pub refused: Option<Refused>,
}

/// The messages of a device that were refused.
#[derive(Debug)]
pub(super) struct Refused {
    /// Their number since `since_ms`.
    pub messages: u64,
    pub since_ms: i64,
    pub last_ms: i64,
    pub door: String,
    pub reason: String,
}

/// The devices of one tenant and their access tokens.
pub(super) trait Registrar {
    fn add(&mut self, new: &NewDevice<'_>) -> anyhow::Result<Added>;
    /// Adds many devices: all or none.
    fn add_many(&mut self, many: &BulkAdd<'_>) -> anyhow::Result<BulkAdded>;
    /// The devices whose name contains the filter, sorted by name.
    fn list(&mut self, filter: Option<&str>, with_tokens: bool) -> anyhow::Result<Vec<Listed>>;
    /// Everything about the device of that name.
    fn details(&mut self, name: &str) -> anyhow::Result<Details>;
    /// Deletes a device. Returns the table that keeps its rows, if it is known.
    fn delete(&mut self, name: &str) -> anyhow::Result<Option<String>>;
    /// Gives a device another name.
    fn rename(&mut self, name: &str, new_name: &str) -> anyhow::Result<()>;
    /// The access token of a device.
    fn token(&mut self, name: &str) -> anyhow::Result<String>;
    /// Gives a device another access token, a random one if `token` is `None`; returns it.
    fn set_token(&mut self, name: &str, token: Option<&str>) -> anyhow::Result<String>;
}

/// The error for a device that does not log in with an access token.
pub(super) fn no_token(name: &str, kind: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "the device \"{name}\" has credentials of the kind {kind} and no access token; `tacho device token --new` gives it one"
    )
}

/// The error for a name that no device has.
pub(super) fn no_device(name: &str) -> anyhow::Error {
    anyhow::anyhow!("there is no device \"{name}\"; check the spelling, `tacho device list` shows all")
}
