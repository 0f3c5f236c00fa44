//! The target of `tacho tune`.

use std::str::FromStr;

use crate::endpoint::{Endpoint, EndpointError};

/// A target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// This machine.
    Host(HostRole),
    /// A running server.
    Server(Server, Endpoint),
}

/// The kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// Elasticsearch or OpenSearch.
    Elasticsearch,
    /// HBase.
    Hbase,
    /// Cassandra.
    Cassandra,
    /// Our own server.
    Tachograph,
}

/// The schemes of URLs, with the default port and whether a path (an index) may follow.
const SCHEMES: [(&str, Server, u16, bool); 5] = [
    ("http", Server::Elasticsearch, 9200, true),
    ("es", Server::Elasticsearch, 9200, true),
    ("hbase", Server::Hbase, 16010, false),
    ("cassandra", Server::Cassandra, 9042, false),
    ("tacho", Server::Tachograph, 8080, false),
];

/// The role of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRole {
    /// The machine runs a server.
    Server,
    /// The machine generates load.
    Generator,
}

impl HostRole {
    /// The name of the role in rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Generator => "generator",
        }
    }
}

/// A text that is no target. No message quotes a text that may be a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A text that no target begins with.
    #[error(
        "`{0}` is not a target of tacho tune: the targets are host: (this machine as the host of a server), host:generator \
         (as the host of a load generator), http://HOST:9200 or es://HOST:9200 (Elasticsearch, OpenSearch), \
         hbase://HOST:16010 (the master), cassandra://HOST:9042, and tacho://HOST:8080 (Tachograph)"
    )]
    Unknown(String),
    /// A URL that is wrong behind its scheme.
    #[error("{scheme}://: {error}")]
    Endpoint {
        /// The scheme.
        scheme: &'static str,
        /// The reason.
        error: EndpointError,
    },
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        match text {
            "host:" | "host:server" => return Ok(Self::Host(HostRole::Server)),
            "host:generator" => return Ok(Self::Host(HostRole::Generator)),
            _ => {}
        }
        let url = text.split_once("://");
        let known = url.and_then(|(scheme, rest)| {
            SCHEMES.iter().find(|(name, ..)| *name == scheme).map(|known| (known, rest))
        });
        let Some(((scheme, server, port, has_path), rest)) = known else {
            return Err(TargetError::Unknown(without_login(text)));
        };
        let endpoint = Endpoint::read(rest, *port, *has_path);
        let endpoint = endpoint.map_err(|error| TargetError::Endpoint { scheme, error })?;
        Ok(Self::Server(*server, endpoint))
    }
}

/// A text without what may be a password: without all before the last `@`.
pub fn without_login(text: &str) -> String {
    let Some((login, host)) = text.rsplit_once('@') else { return text.to_owned() };
    match login.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{host}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_targets_are_refused_with_the_list() {
        assert_eq!("host:".parse(), Ok(Target::Host(HostRole::Server)));
        assert_eq!("host:generator".parse(), Ok(Target::Host(HostRole::Generator)));
        for text in ["", "host", "host:db", "mongodb://localhost", "https://localhost"] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains("host:generator") && error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn servers_are_named_by_urls() {
        let server = |text: &str| match text.parse::<Target>().unwrap() {
            Target::Server(server, endpoint) => (server, endpoint.host, endpoint.port, endpoint.path),
            Target::Host(role) => panic!("{role:?}"),
        };
        let expected = (Server::Elasticsearch, "db".to_owned(), 9200, Some("logs".to_owned()));
        assert_eq!(server("http://db/logs"), expected);
        assert_eq!(server("es://db/logs"), expected);
        assert_eq!(server("hbase://[::1]"), (Server::Hbase, "::1".to_owned(), 16010, None));
        assert_eq!(server("tacho://db:81"), (Server::Tachograph, "db".to_owned(), 81, None));
    }

    #[test]
    fn no_message_quotes_a_password() {
        for text in
            ["mysqlx://me:secret@db", "cassandra://me:secret@db:x", "hbase://me:secret@db/t", "me:secret@db"]
        {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
