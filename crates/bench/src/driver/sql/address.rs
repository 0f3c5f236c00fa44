//! Where a database is: `mysql://user:password@host:3306/database`, or `postgres://` with port 5432.

use std::net::{SocketAddr, ToSocketAddrs as _};

/// Which protocol and which SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// MySQL and MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgres,
}

/// A database to load and to ask.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Protocol and SQL.
    pub dialect: Dialect,
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User; that of the original by default: `sbtest`.
    pub user: String,
    /// Password; may be empty.
    pub password: String,
    /// Database; `sbtest` by default.
    pub database: String,
}

/// The password stays out of logs and results.
impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.without_password())
    }
}

impl Address {
    /// Reads a URL.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong =
            |what: &str| format!("{what}; write mysql://user:password@host:port/database or postgres://...");
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("the target is no URL"))?;
        let (dialect, default_port) = match scheme {
            "mysql" | "mariadb" => (Dialect::Mysql, 3306),
            "postgres" | "postgresql" => (Dialect::Postgres, 5432),
            other => return Err(wrong(&format!("`{other}` is no database spoken here"))),
        };
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, host_port) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (host, port) =
            host_and_port(host_port, default_port).ok_or_else(|| wrong("host or port is wrong"))?;
        let or = |text: &str, default: &str| {
            let text = if text.is_empty() { default } else { text };
            unescape(text).ok_or_else(|| wrong("a % in it is not followed by two hexadecimal digits"))
        };
        Ok(Self {
            dialect,
            host,
            port,
            user: or(user, "sbtest")?,
            password: or(password, "")?,
            database: or(database.split('?').next().unwrap_or(""), "sbtest")?,
        })
    }

    /// The URL without its password.
    pub fn without_password(&self) -> String {
        let scheme = match self.dialect {
            Dialect::Mysql => "mysql",
            Dialect::Postgres => "postgres",
        };
        format!("{scheme}://{}@{}:{}/{}", self.user, self.host, self.port, self.database)
    }

    /// All socket addresses of the host.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        let found: Vec<SocketAddr> = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| format!("host `{}` has no address ({error}); check its name", self.host))?
            .collect();
        if found.is_empty() {
            return Err(format!("host `{}` has no address; check its name", self.host));
        }
        Ok(found)
    }
}

fn host_and_port(text: &str, default_port: u16) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':'))
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Some(default_port), |port| port.parse().ok())?;
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Some((host.to_owned(), port))
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let value = digit(rest.next()?)? * 16 + digit(rest.next()?)?;
            bytes.push(value as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_defaults_and_escapes() {
        let address = Address::parse("mysql://").unwrap();
        assert_eq!(address.without_password(), "mysql://sbtest@127.0.0.1:3306/sbtest");
        let address = Address::parse("postgresql://me:p%40ss%3a%2f@[::1]:99/db?x=1").unwrap();
        assert_eq!(address.without_password(), "postgres://me@::1:99/db");
        assert_eq!(address.password, "p@ss:/");
        assert!(!format!("{address:?}").contains("p@ss"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (url, expected) in [
            ("localhost", "no URL"),
            ("oracle://x", "`oracle`"),
            ("mysql://x:y@h:port/d", "host or port"),
            ("mysql://x:%zz@h/d", "hexadecimal"),
        ] {
            let error = Address::parse(url).unwrap_err();
            assert!(error.contains(expected) && error.contains("mysql://user"), "{error}");
        }
        let address = Address::parse("mysql://no-such-host.invalid/").unwrap();
        assert!(address.resolve().unwrap_err().contains("no-such-host.invalid"));
    }
}
