//! The address of a server in a URL, with user and password.

use std::fmt;

use percent_encoding::percent_decode_str;

/// Host and port of a server, and the login.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// User and password.
    pub login: Option<(String, String)>,
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    pub port: u16,
    /// The part after the address, without the `/`: the name of an index.
    pub path: Option<String>,
}

/// Keeps the password out of logs.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// An address that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// No host.
    #[error("a host is missing: write [USER:PASSWORD@]HOST[:PORT]")]
    Host,
    /// A port that is not a number from 1 to 65535.
    #[error("the port is not a number from 1 to 65535: write [USER:PASSWORD@]HOST[:PORT]")]
    Port,
    /// A user without a password, or a character that must be encoded.
    #[error(
        "write USER:PASSWORD@HOST, and a `/`, `?`, `#`, `:` or `@` of a user or password as %2F, %3F, %23, %3A, %40"
    )]
    Login,
    /// A path, query or fragment that the target does not take.
    #[error("nothing may follow the port")]
    Path,
    /// A path that is not the name of one index.
    #[error(
        "only the name of an index may follow the port: letters, digits, `.`, `_` and `-`, and `*` for several"
    )]
    Index,
}

impl Endpoint {
    /// Reads what follows `://`.
    pub(crate) fn read(text: &str, default_port: u16, has_path: bool) -> Result<Self, EndpointError> {
        let (login, address) = match text.rsplit_once('@') {
            Some((login, address)) => (Some(read_login(login)?), address),
            None => (None, text),
        };
        let (address, path) = match address.split_once(['/', '?', '#']) {
            Some((address, path)) => (address, path.trim_end_matches('/')),
            None => (address, ""),
        };
        if !path.is_empty() && !has_path {
            return Err(EndpointError::Path);
        }
        // An index has no other characters, so a path of the server's API cannot be meant.
        let is_index = |c: char| c.is_alphanumeric() || ".-_*".contains(c);
        if path.starts_with('_') || !path.chars().all(is_index) {
            return Err(EndpointError::Index);
        }
        let (host, port) = read_address(address, default_port)?;
        Ok(Self { login, host, port, path: Some(path.to_owned()).filter(|path| !path.is_empty()) })
    }
}

fn read_login(text: &str) -> Result<(String, String), EndpointError> {
    let decoded = |text: &str| {
        let has_separator = text.contains(['/', '?', '#', ':', '@']);
        let decoded = percent_decode_str(text).decode_utf8().ok()?.into_owned();
        (!has_separator).then_some(decoded)
    };
    let login = text.split_once(':').and_then(|(user, password)| Some((decoded(user)?, decoded(password)?)));
    login.filter(|(user, _)| !user.is_empty()).ok_or(EndpointError::Login)
}

fn read_address(text: &str, default_port: u16) -> Result<(String, u16), EndpointError> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or(EndpointError::Port)?,
        None if port.is_empty() => default_port,
        None => return Err(EndpointError::Port),
    };
    if host.is_empty() { Err(EndpointError::Host) } else { Ok((host.to_owned(), port)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Endpoint, EndpointError> {
        Endpoint::read(text, 9200, true)
    }

    #[test]
    fn addresses_are_read() {
        let endpoint = read("me%40home:p%3Aw@[::1]:81/logs-*/").unwrap();
        assert_eq!(endpoint.login, Some(("me@home".into(), "p:w".into())));
        assert_eq!(
            (endpoint.host.as_str(), endpoint.port, endpoint.path.as_deref()),
            ("::1", 81, Some("logs-*"))
        );
        let endpoint = read("db").unwrap();
        assert_eq!(
            (endpoint.host.as_str(), endpoint.port, endpoint.path, endpoint.login),
            ("db", 9200, None, None)
        );
        assert_eq!(format!("{:?}", read("me:secret@db").unwrap()), "db:9200");
    }

    #[test]
    fn wrong_addresses_are_refused() {
        let cases = [
            ("", EndpointError::Host),
            (":81", EndpointError::Host),
            ("db:", EndpointError::Port),
            ("db:0", EndpointError::Port),
            ("db:99999", EndpointError::Port),
            ("[::1]x", EndpointError::Port),
            ("me@db", EndpointError::Login),
            ("me:p/w@db", EndpointError::Login),
            ("db/_all", EndpointError::Index),
            ("db/a/b", EndpointError::Index),
        ];
        for (text, error) in cases {
            assert_eq!(read(text), Err(error), "{text}");
        }
        assert_eq!(Endpoint::read("db/x", 1, false), Err(EndpointError::Path));
    }
}
