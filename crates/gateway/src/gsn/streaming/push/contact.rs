//! Where a client takes elements. The server sends only to the address of the client that registers, or to hosts that its operator allows: otherwise any
//! client could make it send requests into the network behind it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use axum::http::Uri;
use tokio::net::lookup_host;

use super::super::super::refusal::Refusal;

/// The host that stands for all hosts in the setting.
const ALL: &str = "*";

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

    /// An address to connect to: that of `peer`, or any of the host if it is among `targets`. The error says why there is none.
    pub(super) async fn address(
        &self,
        peer: Option<IpAddr>,
        targets: &[String],
    ) -> Result<SocketAddr, String> {
        let found = lookup_host((self.host.as_str(), self.port)).await;
        let found: Vec<SocketAddr> =
            found.map_err(|error| format!("local-contact-point: {}: {error}", self.host))?.collect();
        self.choose(&found, peer, targets).ok_or_else(|| {
            format!(
                "local-contact-point: {} is not the address of this client ({}); the server's setting time_series.gsn_push_targets names other hosts \
                 that it may send to",
                self.host,
                peer_text(peer)
            )
        })
    }

    fn choose(&self, found: &[SocketAddr], peer: Option<IpAddr>, targets: &[String]) -> Option<SocketAddr> {
        let is_named = targets.iter().any(|target| target == ALL || target.eq_ignore_ascii_case(&self.host));
        let is_peer = |address: &&SocketAddr| {
            peer.is_some_and(|peer| peer.to_canonical() == address.ip().to_canonical())
        };
        if is_named { found.first().copied() } else { found.iter().find(is_peer).copied() }
    }
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
    fn only_the_client_itself_and_named_hosts_get_elements() {
        let point = ContactPoint::parse("http://inside/").unwrap();
        let found: Vec<SocketAddr> = vec!["10.0.0.7:80".parse().unwrap(), "10.0.0.8:80".parse().unwrap()];
        let targets =
            |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let peer = |text: &str| Some(text.parse().unwrap());
        assert_eq!(point.choose(&found, peer("192.168.0.1"), &[]), None);
        assert_eq!(point.choose(&found, None, &[]), None);
        assert_eq!(point.choose(&found, peer("::ffff:10.0.0.8"), &[]), Some(found[1]));
        assert_eq!(point.choose(&found, peer("192.168.0.1"), &targets(&["INSIDE"])), Some(found[0]));
        assert_eq!(point.choose(&found, peer("192.168.0.1"), &targets(&["outside"])), None);
        assert_eq!(point.choose(&found, None, &targets(&["*"])), Some(found[0]));
    }
}
