//! Which servers this one may connect to: the check of an address, after its name was looked up and before the connection.
//!
//! A name in a file of the administrator is the administrator's word, and so is an address. But a name means what its owner says at the
//! moment. So a name never leads to an address that only this machine or its link has, unless the setting lists it.

mod address_kind;
mod listed;

use std::net::{IpAddr, SocketAddr};

pub use self::address_kind::AddressKind;
pub use self::listed::AllowedTargetError;
use self::listed::Listed;

/// The targets that an administrator lists: addresses, networks and names, each with or without a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedTargets {
    listed: Vec<Listed>,
}

impl AllowedTargets {
    /// Reads a list such as `["10.0.0.0/8", "broker.example.com:1883", "[::1]:80", "localhost", "*"]`.
    ///
    /// # Errors
    /// The first text that cannot be read, and what is expected.
    pub fn parse<'a>(
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, (&'a str, AllowedTargetError)> {
        let read = |text: &'a str| text.parse().map_err(|error| (text, error));
        let listed = texts.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { listed })
    }

    /// Whether the list has `*`, which stands for all servers.
    pub fn has_all(&self) -> bool {
        self.listed.contains(&Listed::All)
    }

    /// Whether the list names this host or this address, at any port or at this one. `*` names nothing.
    pub fn name(&self, host: &str, address: SocketAddr) -> bool {
        self.listed.iter().any(|listed| listed.names(host, address))
    }

    /// The addresses of `host` that the server may connect to. `host` is as the file has it, `found` is what was found for it.
    ///
    /// # Errors
    /// There is none. The text says why, and what to do.
    pub fn choose(
        &self,
        host: &str,
        found: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, String> {
        let mut refused = None;
        let mut allowed = Vec::new();
        for address in found {
            match self.refusal(host, address) {
                None => allowed.push(address),
                Some(reason) => refused = Some(reason),
            }
        }
        match (allowed.is_empty(), refused) {
            (false, _) => Ok(allowed),
            (true, Some(reason)) => Err(reason),
            (true, None) => Err(format!("{host} has no address")),
        }
    }

    fn refusal(&self, host: &str, address: SocketAddr) -> Option<String> {
        if self.has_all() || self.name(host, address) {
            return None;
        }
        let ip = address.ip();
        let kind = AddressKind::of(ip);
        let is_allowed = match kind {
            AddressKind::Public | AddressKind::Private => true,
            AddressKind::Loopback => is_local_name(host),
            AddressKind::Link | AddressKind::Unusable => false,
        };
        (!is_allowed).then(|| {
            format!(
                "{host} has the address {}, which is {}; if this is the right server, list it in sensors.allowed_targets",
                ip.to_canonical(),
                kind.words()
            )
        })
    }
}

/// Whether a host is on this machine by its form: an address, `localhost`, or a name without a dot, which no stranger can have.
fn is_local_name(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    host.parse::<IpAddr>().is_ok() || !host.contains('.') || {
        let end = host.rsplit('.').next().unwrap_or_default();
        end.eq_ignore_ascii_case("localhost") || end.eq_ignore_ascii_case("localdomain")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(list: &[&str], host: &str, found: &[&str]) -> Result<Vec<String>, String> {
        let targets = AllowedTargets::parse(list.iter().copied()).unwrap();
        let found: Vec<SocketAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        targets.choose(host, found).map(|chosen| chosen.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_a_file_names_is_allowed_unless_its_address_is_of_the_link_or_of_nobody() {
        for (host, address) in [
            ("example.org", "203.0.113.1:80"),
            ("db.example.org", "10.0.0.7:5432"),
            ("localhost", "127.0.0.1:1883"),
            ("localhost", "[::1]:1883"),
            ("broker", "127.0.1.1:1883"),
            ("127.0.0.1", "127.0.0.1:80"),
            ("::1", "[::1]:80"),
        ] {
            assert_eq!(choose(&[], host, &[address]).unwrap(), [address], "{host}");
        }
        for (host, address) in [
            ("metadata.example.org", "169.254.169.254:80"),
            ("169.254.169.254", "169.254.169.254:80"),
            ("metadata.example.org", "[::ffff:169.254.169.254]:80"),
            ("fe80::1", "[fe80::1]:80"),
            ("rebound.example.org", "127.0.0.1:80"),
            ("rebound.example.org", "[::1]:80"),
            ("0.0.0.0", "0.0.0.0:80"),
            ("example.org", "224.0.0.1:80"),
        ] {
            let refused = choose(&[], host, &[address]).unwrap_err();
            assert!(refused.contains("sensors.allowed_targets"), "{host}: {refused}");
        }
    }

    #[test]
    fn only_addresses_that_are_allowed_are_connected_to() {
        let found = ["169.254.169.254:80", "203.0.113.1:80", "127.0.0.1:80"];
        assert_eq!(choose(&[], "example.org", &found).unwrap(), ["203.0.113.1:80"]);
        assert!(choose(&[], "example.org", &[]).unwrap_err().contains("no address"));
    }

    #[test]
    fn the_list_allows_more() {
        let link = ["169.254.1.5:80"];
        assert!(choose(&["169.254.0.0/16"], "camera.example.org", &link).is_ok());
        assert!(choose(&["169.254.0.0/16:80"], "camera.example.org", &link).is_ok());
        assert!(choose(&["169.254.0.0/16:81"], "camera.example.org", &link).is_err());
        assert!(choose(&["Camera.example.org"], "camera.EXAMPLE.org", &link).is_ok());
        assert!(choose(&["camera.example.org:81"], "camera.example.org", &link).is_err());
        assert!(choose(&["example.org"], "camera.example.org", &link).is_err());
        assert!(choose(&["*"], "camera.example.org", &link).is_ok());
        assert!(choose(&["[fe80::1]:80"], "fe80::1", &["[fe80::1]:80"]).is_ok());
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "http://host",
            "host/path",
            "a b",
            "host:",
            "host:0",
            "host:65536",
            "10.0.0.1/8",
            "[::1",
            "a..b",
            "user@host",
            "*:80",
        ] {
            let (refused, error) = AllowedTargets::parse([text]).unwrap_err();
            assert_eq!(refused, text);
            assert!(error.to_string().contains("10.0.0.0/8"), "{error}");
        }
    }
}
