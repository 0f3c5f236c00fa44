//! The address of a Redis: `redis://user:password@host:6379/database`.

use std::fmt;
use std::net::SocketAddr;

use super::login::Login;
use crate::target_url::{REDIS, TargetUrl, addresses};
use crate::tls::{TlsClient, TlsConfig, TlsError, TlsOptions};

/// The address and the login of a Redis.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User, password and database.
    pub login: Login,
    /// The options of TLS; `None` without TLS.
    pub tls: Option<TlsOptions>,
}

impl RedisAddress {
    /// Parses `redis://user:password@host:6379/database`. The scheme can also be `valkey` or `tcp`; with TLS it is `rediss` or
    /// `valkeys`.
    pub fn parse(url: &str) -> Result<Self, String> {
        let url = TargetUrl::parse(url, &REDIS)?;
        let database = match url.path.as_str() {
            "" => 0,
            text => text.parse().map_err(|_| format!("`/{text}` is not a database number"))?,
        };
        let tls = url.tls_options().cloned();
        let (port, resp3) = (url.port(), url.parameter("resp") == Some("3"));
        Ok(Self {
            host: url.host,
            port,
            tls,
            login: Login { user: url.user, password: url.password, database, resp3 },
        })
    }

    /// The client of TLS for this server; `None` without TLS.
    ///
    /// # Errors
    /// A file of the options cannot be used.
    pub fn tls_client(&self) -> Result<Option<TlsClient>, TlsError> {
        self.tls.as_ref().map(|options| TlsConfig::load(options)?.client(&self.host)).transpose()
    }

    /// All socket addresses of the host, at least one.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        addresses(&self.host, self.port)
    }
}

/// Keeps the password out of logs.
impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let scheme = if self.tls.is_some() { "rediss" } else { "redis" };
        write!(f, "{scheme}://{host}:{}/{}", self.port, self.login.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_redis_has_its_login_and_shows_no_password() {
        let address = RedisAddress::parse("redis://me:s3%40cret@[::1]:7000/5").unwrap();
        let login = &address.login;
        assert_eq!((login.user.as_deref(), login.password.as_deref()), (Some("me"), Some("s3@cret")));
        assert_eq!((login.database, address.port), (5, 7_000));
        assert_eq!(format!("{address} {address:?}"), "redis://[::1]:7000/5 redis://[::1]:7000/5");
        assert!(RedisAddress::parse("redis://host/five").unwrap_err().contains("not a database number"));
    }
}
