//! The address of a broker of MQTT.

/// The port of an address that has none.
const PORT_DEFAULT: u16 = 1883;

/// Host and port of `tcp://HOST:PORT` or `mqtt://HOST:PORT`; `None` for another text, also for an address with a user. Wrappers and
/// exporters have words of their own for the user.
pub(super) fn host_and_port(uri: &str) -> Option<(String, u16)> {
    let place = uri.strip_prefix("tcp://").or_else(|| uri.strip_prefix("mqtt://"))?;
    let place = place.trim_end_matches('/');
    let (host, port) = match place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((host, port)) => (host, port.parse().ok().filter(|port: &u16| *port > 0)?),
        None => (place, PORT_DEFAULT),
    };
    // An address of IPv6 stands in brackets.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_host = !host.is_empty() && !host.contains(['/', '@']) && !host.contains(char::is_whitespace);
    is_host.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        let known = [
            ("tcp://broker:1884", ("broker", 1884)),
            ("tcp://broker", ("broker", 1883)),
            ("mqtt://10.0.0.7:1/", ("10.0.0.7", 1)),
            ("mqtt://[::1]", ("::1", 1883)),
            ("tcp://[::1]:1884", ("::1", 1884)),
        ];
        for (uri, (host, port)) in known {
            assert_eq!(host_and_port(uri), Some((host.to_owned(), port)), "{uri}");
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
        ];
        for uri in unknown {
            assert_eq!(host_and_port(uri), None, "{uri}");
        }
    }
}
