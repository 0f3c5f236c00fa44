//! Where a client takes elements. A client chooses the address, so the server is strict: otherwise any client could make it send requests to services
//! behind it.
//!
//! Without an entry in the list of targets an element goes only to the client that registers, at a port where such clients listen, and never to this
//! machine: behind a load balancer on this machine all clients have its address.

use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use axum::http::Uri;
use clients::outgoing::{AddressKind, AllowedTargets};
use tokio::net::lookup_host;

use super::super::super::limits::PUSH_PORTS;
use super::super::super::refusal::Refusal;

/// The URL at which a client takes elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ContactPoint {
    host: String,
    port: u16,
    target: String,
}

impl ContactPoint {
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let wrong = || {
            Refusal::argument(format!(
                "local-contact-point is {text:?}; it must be a URL such as http://host:22001/streaming/"
            ))
        };
        let uri: Uri = text.trim().parse().map_err(|_| wrong())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(Refusal::absent(
                    "local-contact-point: this server sends elements over http, not over https",
                ));
            }
            _ => return Err(wrong()),
        }
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') {
            return Err(Refusal::argument("local-contact-point must have no user and password"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let target = uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        Ok(Self { host, port: authority.port_u16().unwrap_or(80), target })
    }

    /// The path and query.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// The value of the header `Host`.
    pub(super) fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// An address to connect to: one that `targets` names, or that of `peer`. The error says why there is none.
    pub(super) async fn address(
        &self,
        peer: Option<IpAddr>,
        targets: &AllowedTargets,
    ) -> Result<SocketAddr, String> {
        let found = lookup_host((self.host.as_str(), self.port)).await;
        let found = found.map_err(|error| format!("local-contact-point: {}: {error}", self.host))?;
        let mut refused = None;
        for address in found {
            match self.refusal(address, peer, targets, &is_of_this_machine) {
                None => return Ok(address),
                Some(reason) => refused = Some(reason),
            }
        }
        let reason = refused.unwrap_or_else(|| "has no address".to_owned());
        Err(format!(
            "local-contact-point: {}:{} {reason}; the server's setting time_series.gsn_push_targets names other servers that it may send to",
            self.host, self.port
        ))
    }

    /// Why elements do not go to an address.
    fn refusal(
        &self,
        address: SocketAddr,
        peer: Option<IpAddr>,
        targets: &AllowedTargets,
        is_own: &dyn Fn(IpAddr) -> bool,
    ) -> Option<String> {
        let ip = address.ip().to_canonical();
        if targets.name(&self.host, address) {
            return None;
        }
        let kind = AddressKind::of(ip);
        if !matches!(kind, AddressKind::Public | AddressKind::Private) || is_own(ip) {
            let what = if is_own(ip) { AddressKind::Loopback } else { kind };
            return Some(format!("is {}", what.words()));
        }
        if !PUSH_PORTS.iter().any(|ports| ports.contains(&address.port())) {
            return Some(
                "has a port at which such clients do not listen (80, 8080, 22001 to 22100)".to_owned(),
            );
        }
        let is_peer = peer.is_some_and(|peer| peer.to_canonical() == ip);
        (!is_peer && !targets.has_all())
            .then(|| format!("is not the address of this client ({})", peer_text(peer)))
    }
}

/// Whether an address is one of this machine: only then can a socket have it.
fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

impl fmt::Display for ContactPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.target)
    }
}

/// The address of a client in messages.
pub(super) fn peer_text(peer: Option<IpAddr>) -> String {
    peer.map_or_else(|| "unknown".to_owned(), |peer| peer.to_canonical().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_point_is_a_url_of_http() {
        let point = ContactPoint::parse("http://Gsn.Example:22001/streaming/?a=b").unwrap();
        assert_eq!(point.to_string(), "http://gsn.example:22001/streaming/?a=b");
        assert_eq!(ContactPoint::parse("http://[::1]").unwrap().to_string(), "http://[::1]:80/");
        for (text, status) in [
            ("", 400),
            ("gsn:22001", 400),
            ("file:///etc/passwd", 400),
            ("http://me:secret@h/", 400),
            ("https://h/", 501),
        ] {
            assert_eq!(ContactPoint::parse(text).unwrap_err().0.status, status, "{text}");
        }
    }

    #[test]
    fn only_the_client_itself_and_named_servers_get_elements() {
        let ask = |address: &str, peer: &str, list: &[&str]| {
            let port = address.rsplit_once(':').unwrap().1;
            let point = ContactPoint::parse(&format!("http://inside:{port}/")).unwrap();
            let targets = AllowedTargets::parse(list.iter().copied()).unwrap();
            let is_own = |ip: IpAddr| ip == IpAddr::from([10, 0, 0, 1]);
            let peer = Some(peer.parse().unwrap());
            point.refusal(address.parse().unwrap(), peer, &targets, &is_own)
        };
        for (address, peer, list) in [
            ("10.0.0.8:22001", "10.0.0.8", &[][..]),
            ("10.0.0.8:80", "::ffff:10.0.0.8", &[]),
            ("203.0.113.7:8080", "203.0.113.7", &[]),
            ("10.0.0.7:5432", "192.168.0.1", &["INSIDE"]),
            ("10.0.0.7:9000", "192.168.0.1", &["10.0.0.0/8:9000"]),
            ("127.0.0.1:9000", "127.0.0.1", &["127.0.0.1"]),
            ("203.0.113.7:80", "192.168.0.1", &["*"]),
        ] {
            assert_eq!(ask(address, peer, list), None, "{address} {peer} {list:?}");
        }
        for (address, peer, list) in [
            ("10.0.0.8:22001", "10.0.0.9", &[][..]),
            ("10.0.0.8:22", "10.0.0.8", &[]),
            ("10.0.0.8:5432", "10.0.0.8", &[]),
            ("10.0.0.8:443", "10.0.0.8", &[]),
            ("127.0.0.1:22001", "127.0.0.1", &[]),
            ("[::1]:22001", "::1", &[]),
            ("[::ffff:127.0.0.1]:22001", "127.0.0.1", &[]),
            ("10.0.0.1:22001", "10.0.0.1", &[]),
            ("169.254.169.254:80", "169.254.169.254", &[]),
            ("0.0.0.0:80", "0.0.0.0", &[]),
            ("127.0.0.1:80", "127.0.0.1", &["*"]),
            ("169.254.169.254:80", "192.168.0.1", &["*"]),
            ("203.0.113.7:5432", "192.168.0.1", &["*"]),
            ("10.0.0.7:9001", "192.168.0.1", &["10.0.0.0/8:9000", "outside"]),
        ] {
            assert!(ask(address, peer, list).is_some(), "{address} {peer} {list:?}");
        }
    }

    #[test]
    fn this_machine_knows_its_addresses() {
        assert!(is_of_this_machine([127, 0, 0, 2].into()));
        assert!(!is_of_this_machine([192, 0, 2, 1].into()));
    }
}
