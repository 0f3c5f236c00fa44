//! The target of `tacho tune`.

use std::str::FromStr;

use bench::clients::{Dialect, RedisAddress, SqlAddress, without_password};

/// A target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// This machine.
    Host(HostRole),
    /// MySQL, MariaDB, Percona Server.
    Mysql(SqlAddress),
    /// PostgreSQL.
    Postgresql(SqlAddress),
    /// Redis, Valkey.
    Redis(RedisAddress),
}

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

/// A text that is no target. No message has a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text names no target.
    #[error(
        "`{0}` is not a target of tacho tune: the targets are host: (this machine as the host of a server), host:generator \
         (as the host of a load generator), mysql://user:password@host:3306, postgres://user:password@host:5432/database and \
         redis://user:password@host:6379"
    )]
    Unknown(String),
    /// The URL of a target is wrong.
    #[error("the URL of the target: {0}")]
    Url(String),
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        match (text, scheme.as_str()) {
            ("host:" | "host:server", _) => Ok(Self::Host(HostRole::Server)),
            ("host:generator", _) => Ok(Self::Host(HostRole::Generator)),
            (_, "mysql" | "mariadb" | "mysqls") => sql(text).map(Self::Mysql),
            (_, "postgres" | "postgresql") => sql(text).map(Self::Postgresql),
            (_, "redis" | "rediss" | "valkey" | "valkeys") => {
                RedisAddress::parse(text).map(Self::Redis).map_err(TargetError::Url)
            }
            _ => Err(TargetError::Unknown(without_password(text))),
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
        for text in ["", "host", "host:db", "oracle://localhost"] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains("host:generator") && error.contains(&format!("`{text}`")), "{error}");
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
            ("rediss://:s3cret@h", "TLS"),
        ] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
        }
    }
}
