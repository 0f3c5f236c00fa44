//! Where the output of a sensor is stored besides the store of this server.

mod jdbc;

use std::fmt;

pub use jdbc::{DatabaseAddress, DatabaseKind, JdbcUrl, check_driver};

use crate::virtual_sensors::descriptor::{Located, Storage};
use crate::virtual_sensors::fault::{Fault, Note};

/// Connections to a database that all sensors with the same options share, as in GSN's build.xml.
pub(super) const CONNECTIONS_DEFAULT: usize = 8;

/// A database with what its client needs.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DatabaseOptions {
    /// Where it is.
    pub address: DatabaseAddress,
    pub user: String,
    /// The password; empty for none.
    pub password: String,
    /// The most connections at once.
    pub connections_max: usize,
}

/// What `<storage>` says about the place of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoragePlace {
    /// The store of this server alone.
    Own,
    /// The store of this server, and then a table of a database.
    Database(DatabaseOptions),
}

impl fmt::Debug for DatabaseOptions {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, user, connections_max, .. } = self;
        write!(f, "DatabaseOptions({address}, user {user:?}, {connections_max} connections)")
    }
}

/// The place that `<storage>` names; `None` if it names none.
pub(crate) fn place(storage: &Storage, notes: &mut Vec<Note>) -> Result<Option<StoragePlace>, Fault> {
    for said in &storage.unused {
        notes.push(Note { place: said.place, text: format!("storage {} has no effect", said.value) });
    }
    if let Some(said) = &storage.sliding_connections_max {
        let text = "max-sliding-db-connections has no effect: windows are in memory";
        notes.push(Note { place: said.place, text: text.into() });
    }
    let Some(url) = &storage.url else {
        let given = [&storage.driver, &storage.user, &storage.password];
        if let Some(said) = given.into_iter().flatten().find(|said| !said.value.is_empty()) {
            let text = "storage has no url, so the output goes to the store of this server";
            notes.push(Note { place: said.place, text: text.into() });
        }
        return Ok(None);
    };
    let Some(address) = server(url, storage.driver.as_ref(), notes)? else {
        let text = "the store of this server replaces the database inside of Java";
        notes.push(Note { place: url.place, text: text.into() });
        return Ok(Some(StoragePlace::Own));
    };
    let text =
        |said: &Option<Located<String>>| said.as_ref().map(|said| said.value.clone()).unwrap_or_default();
    let connections = storage.connections_max.as_ref().and_then(|said| usize::try_from(said.value).ok());
    Ok(Some(StoragePlace::Database(DatabaseOptions {
        address,
        user: text(&storage.user),
        password: text(&storage.password),
        connections_max: connections.unwrap_or(CONNECTIONS_DEFAULT),
    })))
}

/// The server of a URL, which its driver must fit; `None` for a database inside of Java.
pub(super) fn server(
    url: &Located<String>,
    driver: Option<&Located<String>>,
    notes: &mut Vec<Note>,
) -> Result<Option<DatabaseAddress>, Fault> {
    let parsed = JdbcUrl::parse(&url.value).map_err(|reason| Fault::unsupported(url.place, reason))?;
    let JdbcUrl::Server(address, unused) = parsed else { return Ok(None) };
    for name in unused {
        let text = format!("the parameter {name} of the url has no effect");
        notes.push(Note { place: url.place, text });
    }
    if let Some(driver) = driver.filter(|said| !said.value.is_empty()) {
        check_driver(&driver.value, address.kind).map_err(|reason| Fault::invalid(driver.place, reason))?;
    }
    Ok(Some(address))
}
