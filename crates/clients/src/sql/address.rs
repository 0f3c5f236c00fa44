//! The address of a database: `mysql://user:password@host:3306/database`, or `postgres://` with port 5432.

use std::net::SocketAddr;

use crate::target_url::{MYSQL, POSTGRES, TargetUrl, addresses, encoded};
use crate::tls::{TlsClient, TlsConfig, TlsOptions};

/// sysbench's default user and database.
const DEFAULT_NAME: &str = "sbtest";

/// The protocol and the SQL dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// MySQL and MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgres,
}

/// The address and the credentials of a database.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// The protocol and the SQL dialect.
    pub dialect: Dialect,
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The user; `sbtest` by default, as in sysbench.
    pub user: String,
    /// Password; may be empty.
    pub password: String,
    /// Database; `sbtest` by default.
    pub database: String,
    /// TLS; `None` without TLS.
    tls: Option<AddressTls>,
}

/// TLS of a database.
#[derive(Clone)]
pub(super) struct AddressTls {
    pub options: TlsOptions,
    pub(super) client: TlsClient,
    /// The parameters of the URL, with `?`.
    query: String,
}

impl PartialEq for AddressTls {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options
    }
}

impl Eq for AddressTls {}

/// Keeps the password out of logs and results.
impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.without_password())
    }
}

impl Address {
    /// Parses a URL, and reads the files that it names for TLS.
    ///
    /// # Errors
    /// The text is not such a URL, or a file cannot be used.
    pub fn parse(url: &str) -> Result<Self, String> {
        Self::with_defaults(url, |_| [DEFAULT_NAME; 2])
    }

    /// Parses a URL. `defaults` gives the user and the database of a URL without them.
    pub fn with_defaults(
        url: &str,
        defaults: impl FnOnce(Dialect) -> [&'static str; 2],
    ) -> Result<Self, String> {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        let (dialect, form) = match scheme.as_str() {
            "mysql" | "mariadb" | "mysqls" => (Dialect::Mysql, &MYSQL),
            "postgres" | "postgresql" => (Dialect::Postgres, &POSTGRES),
            _ => {
                return Err(format!(
                    "it begins with the scheme of no database spoken here; write {} or postgres://...",
                    MYSQL.example
                ));
            }
        };
        let url = TargetUrl::parse(url, form)?;
        let tls = match (url.tls_options().cloned(), url.tls_query()) {
            (Some(options), Some(query)) => {
                let client = TlsConfig::load(&options).and_then(|config| config.client(&url.host));
                Some(AddressTls { options, query, client: client.map_err(|error| error.to_string())? })
            }
            _ => None,
        };
        let [user, database] = defaults(dialect);
        let or = |text: String, default: &str| if text.is_empty() { default.to_owned() } else { text };
        Ok(Self {
            dialect,
            tls,
            port: url.port(),
            user: or(url.user.unwrap_or_default(), user),
            password: url.password.unwrap_or_default(),
            database: or(url.path, database),
            host: url.host,
        })
    }

    /// The URL without its password. [`Address::parse`] reads it.
    pub fn without_password(&self) -> String {
        let scheme = match self.dialect {
            Dialect::Mysql => "mysql",
            Dialect::Postgres => "postgres",
        };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let [user, database] = [&self.user, &self.database].map(|name| encoded(name));
        let query = self.tls.as_ref().map_or("", |tls| tls.query.as_str());
        format!("{scheme}://{user}@{host}:{}/{database}{query}", self.port)
    }

    /// What a result says about TLS: how the server's certificate was checked; `None` without TLS.
    pub fn verification(&self) -> Option<String> {
        self.tls.as_ref().map(|tls| tls.options.verification())
    }

    pub(super) fn tls(&self) -> Option<&AddressTls> {
        self.tls.as_ref()
    }

    /// All socket addresses of the host, at least one.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        addresses(&self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_defaults_and_escapes() {
        let address = Address::parse("mysql://").unwrap();
        assert_eq!(address.without_password(), "mysql://sbtest@127.0.0.1:3306/sbtest");
        let text = "postgresql://m%40e:p%40ss%3a%2f@[::1]:99/d%2fb?sslmode=disable";
        let address = Address::parse(text).unwrap();
        assert_eq!(address.without_password(), "postgres://m%40e@[::1]:99/d%2Fb");
        let again = Address::parse(&address.without_password()).unwrap();
        assert_eq!(again, Address { password: String::new(), ..address.clone() });
        assert_eq!(
            (address.user.as_str(), address.password.as_str(), address.database.as_str()),
            ("m@e", "p@ss:/", "d/b")
        );
        assert!(!format!("{address:?}").contains("p@ss"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (url, expected) in [
            ("localhost", "no database spoken here"),
            ("oracle://x", "no database spoken here"),
            ("mysql://x:y@h:port/d", "the port is not"),
            ("mysql://x:%zz@h/d", "hexadecimal"),
            ("mysql://h/d?sslmode=prefer", "DISABLED or REQUIRED"),
            ("mysql://h/d?ssl-ca=/x", "is for TLS"),
        ] {
            let error = Address::parse(url).unwrap_err();
            assert!(error.contains(expected) && error.contains("mysql://user"), "{error}");
        }
        let error = Address::parse("mysql://h/d?ssl-mode=VERIFY_CA&ssl-ca=/no/such.pem").unwrap_err();
        assert!(error.contains("cannot read /no/such.pem"), "{error}");
        let address = Address::parse("mysql://no-such-host.invalid/").unwrap();
        assert!(address.resolve().unwrap_err().contains("no-such-host.invalid"));
    }
}
