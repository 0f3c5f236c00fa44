//! The target of `tacho tune`.

use std::str::FromStr;

use crate::endpoint::{Endpoint, EndpointError};
use clients::redis::RedisAddress;
use clients::sql::{Address as SqlAddress, Dialect};
use clients::target_url::without_password;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// This machine.
    Host(HostRole),
    /// MySQL, MariaDB, Percona Server.
    Mysql(SqlAddress),
    Postgresql(SqlAddress),
    /// Redis, Valkey.
    Redis(RedisAddress),
    /// A running server.
    Server(Server, Endpoint),
}

/// The kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// Elasticsearch or OpenSearch.
    Elasticsearch,
    Hbase,
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

/// A text that is not a target. No message has a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A text that no target begins with.
    #[error(
        "`{0}` is not a target of tacho tune: the targets are host: (this machine as the host of a server), host:generator \
         (as the host of a load generator), mysql://user:password@HOST:3306, postgres://user:password@HOST:5432/DATABASE, \
         redis://HOST:6379, http://HOST:9200 or es://HOST:9200 (Elasticsearch, OpenSearch), hbase://HOST:16010 (the master), \
         cassandra://HOST:9042, and tacho://HOST:8080 (Tachograph)"
    )]
    Unknown(String),
    /// A load needs one index.
    #[error(
        "the load needs an index: write http://HOST:9200/INDEX, or name the address of the load with --load-target"
    )]
    NoIndex,
    /// The URL of a database is wrong.
    #[error("the URL of the target: {0}")]
    Url(String),
    /// A URL that is wrong behind its scheme.
    #[error("{scheme}://: {error}")]
    Endpoint { scheme: &'static str, error: EndpointError },
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        match (text, scheme.as_str()) {
            ("host:" | "host:server", _) => return Ok(Self::Host(HostRole::Server)),
            ("host:generator", _) => return Ok(Self::Host(HostRole::Generator)),
            (_, "mysql" | "mariadb" | "mysqls") => return sql(text).map(Self::Mysql),
            (_, "postgres" | "postgresql") => return sql(text).map(Self::Postgresql),
            (_, "redis" | "rediss" | "valkey" | "valkeys") => {
                return RedisAddress::parse(text).map(Self::Redis).map_err(TargetError::Url);
            }
            _ => {}
        }
        let url = text.split_once("://");
        let known = url.and_then(|(scheme, rest)| {
            SCHEMES.iter().find(|(name, ..)| *name == scheme).map(|known| (known, rest))
        });
        let Some(((scheme, server, port, has_path), rest)) = known else {
            return Err(TargetError::Unknown(without_password(text)));
        };
        let endpoint = Endpoint::read(rest, *port, *has_path);
        let endpoint = endpoint.map_err(|error| TargetError::Endpoint { scheme, error })?;
        Ok(Self::Server(*server, endpoint))
    }
}

impl Target {
    /// The URL at which a load finds the server of the target, which the user has written as `url`. `None`: only the scenario
    /// knows it.
    pub fn load_url(&self, url: &str) -> Result<Option<String>, TargetError> {
        match self {
            // Without a database in the URL the load has its own.
            Self::Mysql(_) | Self::Postgresql(_) | Self::Redis(_) => Ok(Some(url.to_owned())),
            Self::Server(Server::Elasticsearch, endpoint) if endpoint.path.is_none() => {
                Err(TargetError::NoIndex)
            }
            Self::Server(Server::Elasticsearch, _) => Ok(Some(url.replacen("es://", "http://", 1))),
            Self::Host(_) | Self::Server(..) => Ok(None),
        }
    }
}

fn sql(url: &str) -> Result<SqlAddress, TargetError> {
    // MySQL takes a connection without a database.
    let defaults = |dialect| match dialect {
        Dialect::Mysql => ["root", ""],
        Dialect::Postgres => ["postgres", "postgres"],
    };
    SqlAddress::with_defaults(url, defaults).map_err(TargetError::Url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_targets_are_refused_with_the_list() {
        assert_eq!("host:".parse(), Ok(Target::Host(HostRole::Server)));
        assert_eq!("host:generator".parse(), Ok(Target::Host(HostRole::Generator)));
        for text in ["", "host", "host:db", "oracle://localhost", "https://localhost"] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains("host:generator") && error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn servers_are_named_by_urls() {
        let server = |text: &str| match text.parse::<Target>().unwrap() {
            Target::Server(server, endpoint) => (server, endpoint.host, endpoint.port, endpoint.path),
            other => panic!("{other:?}"),
        };
        let expected = (Server::Elasticsearch, "db".to_owned(), 9200, Some("logs".to_owned()));
        assert_eq!(server("http://db/logs"), expected);
        assert_eq!(server("es://db/logs"), expected);
        assert_eq!(server("hbase://[::1]"), (Server::Hbase, "::1".to_owned(), 16010, None));
        assert_eq!(server("tacho://db:81"), (Server::Tachograph, "db".to_owned(), 81, None));
    }

    #[test]
    fn a_load_finds_the_server_that_is_changed() {
        let load = |url: &str| url.parse::<Target>().unwrap().load_url(url);
        assert_eq!(load("redis://:pw@db:7000"), Ok(Some("redis://:pw@db:7000".to_owned())));
        assert_eq!(load("es://db/logs"), Ok(Some("http://db/logs".to_owned())));
        assert_eq!(load("es://db"), Err(TargetError::NoIndex));
        assert_eq!((load("tacho://db"), load("host:")), (Ok(None), Ok(None)));
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

    #[test]
    fn urls_of_databases_have_defaults_and_show_no_password() {
        let Ok(Target::Mysql(address)) = "mysql://127.0.0.1:3307".parse() else { panic!("not MySQL") };
        assert_eq!((address.user.as_str(), address.database.as_str(), address.port), ("root", "", 3_307));
        let Ok(Target::Postgresql(address)) = "postgres://me:p%40ss@db/x".parse() else {
            panic!("not PostgreSQL")
        };
        assert_eq!((address.password.as_str(), address.database.as_str()), ("p@ss", "x"));
        assert!(matches!("valkey://:pw@h".parse(), Ok(Target::Redis(_))));
        for (text, expected) in [
            ("oracle://me:s3cret@h", "is not a target"),
            ("mysql://me:s3cret@h:x/", "port"),
            ("rediss://:s3cret@h?insecure=true&cafile=/ca.pem", "verifies nothing"),
        ] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
        }
    }
}
