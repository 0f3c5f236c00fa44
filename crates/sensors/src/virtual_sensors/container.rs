//! `gsn.xml`, the configuration of a GSN server. Of it only the facts that another server can have are kept.

use super::descriptor::node::{Node, flag, integer};
use super::descriptor::{Said, check_size, xml};
use super::fault::{Fault, Note};

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
    /// Whether callers have to log in.
    pub access_control: bool,
    /// How times are shown, as a Java pattern.
    pub time_format: String,
    /// The driver and the address of the database of the output. User and password are not kept.
    pub storage: Option<(String, String)>,
    /// The same of the database of the windows.
    pub sliding: Option<(String, String)>,
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
            storage: root.child("storage")?.map(|node| storage(node, &mut notes)).transpose()?,
            sliding: match root.child("sliding")? {
                Some(around) => {
                    let inner = around.child("storage")?.ok_or_else(|| around.missing("<storage>"))?;
                    let inner = storage(inner, &mut notes)?;
                    around.finish()?;
                    Some(inner)
                }
                None => None,
            },
            notes: Vec::new(),
        };
        for secret in ["ssl-key-store-password", "ssl-key-password"] {
            if let Some(said) = root.word(secret)? {
                let text = format!("{secret} has no effect: certificates stand in the configuration of TLS");
                notes.push(Note { place: said.place, text });
            }
        }
        if let Some(said) = truth(&root, "zmq-enable")?.filter(|said| said.value) {
            notes.push(Note { place: said.place, text: "ZeroMQ is not spoken here; use MQTT".into() });
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

fn truth(root: &Node, name: &'static str) -> Result<Option<Said<bool>>, Fault> {
    root.word(name)?.map(|said| flag(said, name)).transpose()
}

fn port(root: &Node, name: &'static str) -> Result<Option<Said<u16>>, Fault> {
    let Some(said) = root.word(name)? else { return Ok(None) };
    let number = integer(said, name, 1, i64::from(u16::MAX))?;
    // The bounds are those of a port.
    Ok(u16::try_from(number.value).ok().map(|port| Said::new(port, number.place)))
}

fn storage(node: &Node, notes: &mut Vec<Note>) -> Result<(String, String), Fault> {
    let needed = |name: &str| node.attribute(name).ok_or_else(|| node.missing(name));
    let (driver, url) = (needed("driver")?, needed("url")?);
    for secret in ["user", "password", "identifier"] {
        node.attribute(secret);
    }
    let text =
        "the database has no effect: output goes to the store of this server, and windows are in memory";
    notes.push(Note { place: node.place, text: text.into() });
    node.finish()?;
    Ok((driver.value.trim().to_owned(), url.value.trim().to_owned()))
}
