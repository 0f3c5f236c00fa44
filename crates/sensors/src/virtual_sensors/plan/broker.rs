//! The address of a broker of MQTT, and the certificates of a connection to it.

use crate::virtual_sensors::descriptor::Pair;
use crate::virtual_sensors::fault::Fault;

/// The schemes, whether their connections are encrypted, and the port of an address that has none. `ssl` is the word of GSN's client.
const SCHEMES: [(&str, bool, u16); 5] = [
    ("tcp://", false, 1883),
    ("mqtt://", false, 1883),
    ("mqtts://", true, 8883),
    ("ssl://", true, 8883),
    ("tls://", true, 8883),
];

/// The files of an encrypted connection, in PEM. The certificate of the broker is always checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokerTls {
    /// The authorities that may sign the certificate of the broker; those of the system without it.
    pub cafile: Option<String>,
    /// The certificate of the client and its key, if the broker wants them.
    pub identity: Option<(String, String)>,
}

/// The parts of an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BrokerAddress {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_encrypted: bool,
}

impl BrokerAddress {
    /// The certificates of a connection to this address, from the values of `cafile`, `certfile` and `keyfile`; `None` if the
    /// connection is not encrypted.
    pub(super) fn tls(&self, files: [Option<&Pair>; 3]) -> Result<Option<BrokerTls>, Fault> {
        let files = files.map(|pair| pair.filter(|pair| !pair.value.value.is_empty()));
        if !self.is_encrypted {
            return match files.into_iter().flatten().next() {
                None => Ok(None),
                Some(pair) => {
                    let reason =
                        format!("{} needs an encrypted connection, mqtts://HOST:PORT", pair.key.value);
                    Err(Fault::invalid(pair.key.place, reason))
                }
            };
        }
        let text = |pair: &Pair| pair.value.value.clone();
        let [cafile, certificate, key] = files;
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((text(certificate), text(key))),
            (None, None) => None,
            (Some(alone), None) | (None, Some(alone)) => {
                let reason =
                    "certfile and keyfile belong together: the certificate of the client and its key";
                return Err(Fault::invalid(alone.key.place, reason));
            }
        };
        Ok(Some(BrokerTls { cafile: cafile.map(text), identity }))
    }
}

/// The parts of `tcp://HOST:PORT`, `mqtt://HOST:PORT` or, for an encrypted connection, `mqtts://HOST:PORT`; `None` for another text, also
/// for an address with a user. Wrappers and exporters have words of their own for the user.
pub(super) fn address(uri: &str) -> Option<BrokerAddress> {
    let of_scheme = |(scheme, is_encrypted, port): (&str, bool, u16)| {
        Some((uri.strip_prefix(scheme)?, is_encrypted, port))
    };
    let (place, is_encrypted, port_default) = SCHEMES.into_iter().find_map(of_scheme)?;
    let place = place.trim_end_matches('/');
    let (host, port) = match place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((host, port)) => (host, port.parse().ok().filter(|port: &u16| *port > 0)?),
        None => (place, port_default),
    };
    // An address of IPv6 is in brackets.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_host = !host.is_empty() && !host.contains(['/', '@']) && !host.contains(char::is_whitespace);
    is_host.then(|| BrokerAddress { host: host.to_owned(), port, is_encrypted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        let known = [
            ("tcp://broker:1884", ("broker", 1884, false)),
            ("tcp://broker", ("broker", 1883, false)),
            ("mqtt://10.0.0.7:1/", ("10.0.0.7", 1, false)),
            ("mqtt://[::1]", ("::1", 1883, false)),
            ("tcp://[::1]:1884", ("::1", 1884, false)),
            ("mqtts://broker", ("broker", 8883, true)),
            ("ssl://broker:8884", ("broker", 8884, true)),
            ("tls://[::1]", ("::1", 8883, true)),
        ];
        for (uri, (host, port, is_encrypted)) in known {
            let expected = BrokerAddress { host: host.to_owned(), port, is_encrypted };
            assert_eq!(address(uri), Some(expected), "{uri}");
        }
    }

    #[test]
    fn an_address_with_a_user_a_path_or_another_scheme_is_none() {
        let unknown = [
            "broker",
            "http://broker",
            "tcp://",
            "tcp://:1883",
            "tcp://broker:0",
            "tcp://broker:65536",
            "tcp://broker:x",
            "tcp://broker/a",
            "tcp://bro ker",
            "tcp://user:secret@broker:1883",
            "tcp://user:secret@broker",
            "mqtts://user:secret@broker",
            "wss://broker",
        ];
        for uri in unknown {
            assert_eq!(address(uri), None, "{uri}");
        }
    }
}
