//! The wrappers `remote-api`, `remote-rest`, `remote` and `remote-push`: a virtual sensor of another server, which is asked for new rows
//! or pushes them.

use super::predicates::Predicates;
use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::plan::secret::shown_url;

/// Milliseconds between two requests, as in GSN.
const SAMPLING_MS: u64 = 10_000;
const SAMPLING_MS_MIN: u64 = 10;

/// A virtual sensor of another server.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// The address of the server, without a slash at its end. It may have a user with a password.
    pub url: String,
    /// The interface that is asked.
    pub interface: RemoteInterface,
    /// The name of the sensor there.
    pub sensor: String,
    /// A PEM file with the authorities that may sign the certificate of the server; those of the system without it.
    pub cafile: Option<String>,
    /// The login and its secret.
    pub login: Option<(String, String)>,
    /// The time after which rows are read the first time, in milliseconds since 1970; the time of the start without it.
    pub start_ms: Option<i64>,
    /// Milliseconds between two requests.
    pub sampling_ms: u64,
    /// The address at which this server takes rows, if the other one pushes them.
    pub push_to: Option<String>,
}

/// An interface for rows of virtual sensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteInterface {
    /// REST v3 of GSN 2.0, with a token of OAuth.
    RestV3,
    /// `/multidata` of GSN 1.1, with HTTP Basic.
    Multidata,
}

impl std::fmt::Debug for Remote {
    /// Without secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let url = shown_url(&self.url);
        f.debug_struct("Remote").field("url", &url).field("sensor", &self.sensor).finish_non_exhaustive()
    }
}

impl Remote {
    /// `remote-api` of GSN 2.0.
    pub(super) fn of_rest(predicates: &mut Predicates<'_>) -> Result<Self, Fault> {
        let url = predicates.needed("url")?;
        predicates.check_url(&url, "url")?;
        let cafile = predicates.cafile(&url)?;
        let login = (predicates.needed("client_id")?, predicates.needed("client_secret")?);
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            interface: RemoteInterface::RestV3,
            sensor: predicates.needed("vs_name")?.to_lowercase(),
            cafile,
            login: Some(login),
            start_ms: predicates.integer("starting_time", 0, i64::MAX / 1_000)?,
            sampling_ms: predicates.period("sampling", SAMPLING_MS, SAMPLING_MS_MIN)?,
            push_to: None,
        })
    }

    /// `remote-rest`, `remote` and `remote-push` of GSN 1.1.
    pub(super) fn of_multidata(
        wrapper: &str,
        predicates: &mut Predicates<'_>,
        notes: &mut Vec<Note>,
    ) -> Result<Self, Fault> {
        let sensor = match predicates.optional("name") {
            Some(name) => {
                predicates.refuse_beside("query", "name")?;
                name.to_lowercase()
            }
            None => sensor_of_query(predicates)?,
        };
        let url = match predicates.optional("remote-contact-point") {
            Some(url) => {
                for key in ["host", "port"] {
                    predicates.refuse_beside(key, "remote-contact-point")?;
                }
                url
            }
            None => {
                let host = predicates.needed("host")?;
                let port = predicates.integer("port", 1, i64::from(u16::MAX))?.unwrap_or(22_001);
                format!("http://{host}:{port}")
            }
        };
        predicates.check_url(&url, "remote-contact-point")?;
        let cafile = predicates.cafile(&url)?;
        let url = url.trim_end_matches('/').trim_end_matches("/streaming").trim_end_matches('/').to_owned();
        let push_to = push_to(wrapper, predicates, notes)?;
        predicates.note("timeout", "a request has a limit of its own", notes);
        predicates.note("continuous", "rows after the newest stored one are always read", notes);
        predicates.check_needs("username", "password")?;
        predicates.check_needs("password", "username")?;
        let login = predicates.optional("username").zip(predicates.optional("password"));
        let start_ms = predicates.time("start-time")?;
        Ok(Self {
            url,
            interface: RemoteInterface::Multidata,
            sensor,
            cafile,
            login,
            start_ms,
            sampling_ms: predicates.period("sampling", SAMPLING_MS, SAMPLING_MS_MIN)?,
            push_to,
        })
    }
}

/// The address at which this server takes rows: `remote-push` needs one, `remote` asks for rows without one, `remote-rest` always asks.
fn push_to(
    wrapper: &str,
    predicates: &mut Predicates<'_>,
    notes: &mut Vec<Note>,
) -> Result<Option<String>, Fault> {
    let contact = match wrapper {
        "remote-push" => Some(predicates.needed("local-contact-point")?),
        "remote" => predicates.optional("local-contact-point"),
        _ => {
            predicates.note("local-contact-point", "this server asks the other one for new rows", notes);
            None
        }
    };
    let Some(contact) = contact else { return Ok(None) };
    predicates.check_url(&contact, "local-contact-point")?;
    if contact.contains('@') || !contact.starts_with("http://") || !contact.ends_with("/streaming/") {
        let reason = "local-contact-point is the address of this server, such as http://HOST:22001/streaming/, without a user and without TLS";
        return Err(predicates.invalid("local-contact-point", reason.to_owned()));
    }
    if predicates.optional("sampling").is_some() {
        let reason = "sampling is how often this server asks; with local-contact-point the other one pushes";
        return Err(predicates.invalid("sampling", reason.to_owned()));
    }
    Ok(Some(contact))
}

/// The sensor of a query of the form `select … from SENSOR`.
fn sensor_of_query(predicates: &mut Predicates<'_>) -> Result<String, Fault> {
    let query = predicates.needed("query")?;
    let lower = query.to_lowercase();
    let words: Vec<&str> = lower.trim_end_matches(';').split_whitespace().collect();
    match &words[..] {
        ["select", "*", "from", sensor] => Ok((*sensor).to_owned()),
        _ => {
            let reason = format!(
                "query is {query:?}; it is \"select * from SENSOR\": write fields and conditions into the query of the source"
            );
            Err(predicates.invalid("query", reason))
        }
    }
}
