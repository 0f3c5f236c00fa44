//! `gsn.xml`, the configuration of a GSN server. Of it only the facts that another server can have are kept.

use super::descriptor::node::{Node, flag, integer};
use super::descriptor::read;
use super::descriptor::{Located, check_size, xml};
use super::fault::{Fault, Note};
use super::plan::{StoragePlace, storage_place};

/// What a `gsn.xml` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The name of the server.
    pub name: Option<String>,
    /// Who runs it.
    pub author: Option<String>,
    /// The address of the author.
    pub email: Option<String>,
    /// The text for people.
    pub description: Option<String>,
    /// The port of HTTP.
    pub port: u16,
    /// The port of HTTPS.
    pub ssl_port: Option<u16>,
    /// Whether callers must log in.
    pub access_control: bool,
    /// How times are shown, as a Java pattern.
    pub time_format: String,
    /// Where the output of sensors goes that have no `<storage>` with a URL.
    pub storage: Option<StoragePlace>,
    /// What has no effect here.
    pub notes: Vec<Note>,
}

/// The port of GSN's HTTP.
const DEFAULT_PORT: u16 = 22001;
/// GSN's form of times.
const DEFAULT_TIME_FORMAT: &str = "dd/MM/yyyy HH:mm:ss Z";

impl Container {
    /// Reads the file, of version 1.1 or 2.0.
    ///
    /// # Errors
    /// Names the place, the fault and what is expected.
    pub fn from_xml(text: &str) -> Result<Self, Fault> {
        check_size(text)?;
        let root = xml::parse(text, "sensor-server")?;
        let mut notes = Vec::new();
        // 1.1 calls it `port`, 2.0 `monitor-port`.
        let port = match (port(&root, "port")?, port(&root, "monitor-port")?) {
            (Some(_), Some(second)) => {
                let reason = "port and monitor-port are the same word; use one of them";
                return Err(Fault::invalid(second.place, reason));
            }
            (first, second) => first.or(second).map_or(DEFAULT_PORT, |said| said.value),
        };
        let container = Self {
            name: words(&root, "name")?,
            author: words(&root, "author")?,
            email: words(&root, "email")?,
            description: words(&root, "description")?,
            port,
            ssl_port: self::port(&root, "ssl-port")?.map(|said| said.value),
            access_control: truth(&root, "access-control")?.is_some_and(|said| said.value),
            time_format: words(&root, "time-format")?.unwrap_or_else(|| DEFAULT_TIME_FORMAT.into()),
            storage: root.child("storage")?.map(|node| storage(node, &mut notes)).transpose()?.flatten(),
            notes: Vec::new(),
        };
        if let Some(node) = root.child("sliding")? {
            sliding(node, &mut notes)?;
        }
        note_listeners(&root, &mut notes)?;
        for secret in ["ssl-key-store-password", "ssl-key-password"] {
            if let Some(said) = root.word(secret)? {
                let text =
                    format!("{secret} has no effect: the options tls.certificate and tls.key name the files");
                notes.push(Note { place: said.place, text });
            }
        }
        if let Some(said) = truth(&root, "zmq-enable")?.filter(|said| said.value) {
            notes.push(Note {
                place: said.place,
                text: "zmq-enable has no effect: subscribe over MQTT or WebSocket".into(),
            });
        }
        for name in ["zmqproxy", "zmqmeta"] {
            self::port(&root, name)?;
        }
        root.finish()?;
        Ok(Self { notes, ..container })
    }
}

fn words(root: &Node, name: &'static str) -> Result<Option<String>, Fault> {
    let said = root.word(name)?.map(|said| said.value.trim().to_owned());
    Ok(said.filter(|text| !text.is_empty()))
}

fn truth(root: &Node, name: &'static str) -> Result<Option<Located<bool>>, Fault> {
    root.word(name)?.map(|said| flag(said, name)).transpose()
}

fn port(root: &Node, name: &'static str) -> Result<Option<Located<u16>>, Fault> {
    let Some(said) = root.word(name)? else { return Ok(None) };
    let number = integer(said, name, 1, i64::from(u16::MAX))?;
    // The bounds are those of a port.
    Ok(u16::try_from(number.value).ok().map(|port| Located::new(port, number.place)))
}

fn storage(node: &Node, notes: &mut Vec<Note>) -> Result<Option<StoragePlace>, Fault> {
    let storage = read::storage(node)?;
    if storage.url.is_none() {
        return Err(node.missing("url"));
    }
    storage_place(&storage, notes)
}

/// The database of the windows, which are in memory here.
fn sliding(node: &Node, notes: &mut Vec<Note>) -> Result<(), Fault> {
    let inner = node.child("storage")?.ok_or_else(|| node.missing("<storage>"))?;
    read::storage(inner)?;
    let text = "the storage of windows has no effect: windows are in memory".to_owned();
    notes.push(Note { place: node.place, text });
    node.finish()
}

/// Ports and access control, which are options of this server.
fn note_listeners(root: &Node, notes: &mut Vec<Note>) -> Result<(), Fault> {
    for (name, option) in [
        ("port", "time_series.gsn_listen"),
        ("monitor-port", "time_series.gsn_listen"),
        ("ssl-port", "http.tls_listen"),
        ("access-control", "http.public_read"),
    ] {
        if let Some(said) = root.word(name)? {
            let text = format!("{name} has no effect: the option {option} replaces it");
            notes.push(Note { place: said.place, text });
        }
    }
    Ok(())
}
