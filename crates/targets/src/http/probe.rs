//! A request outside of the load: it asks for the server's product name.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use wire::http1::{self, write};

use clients::tls::{Stream, TlsClient, TlsFailure};
use load::{Error, Result};

/// The longest wait for the answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends HEAD for `path` by HTTP/1.1 and returns the server's product name, if it gives one. A server without HTTP/1.1
/// has no name.
pub fn server(
    address: SocketAddr,
    tls: Option<&TlsClient>,
    host: &str,
    path: &str,
) -> Result<Option<String>> {
    let cannot = |what: &str| Error::io(format!("{what} the server at {address}"));
    let mut stream = Stream::connect(address, tls, TIMEOUT).map_err(cannot("connecting to"))?;
    let mut request = Vec::new();
    write::start(&mut request, "HEAD", path);
    write::header(&mut request, "Host", host);
    write::header(&mut request, "Connection", "close");
    write::end(&mut request);
    stream.write_all(&request).map_err(cannot("asking"))?;
    let mut inbound = Vec::new();
    let mut buffer = [0; 4 * 1024];
    loop {
        match http1::head(&inbound, true) {
            Ok(Some(head)) => return Ok(name(&inbound[..head.bytes])),
            Ok(None) => {}
            Err(_) if tls.is_none() && TlsFailure::is_alert(&inbound) => {
                return Err(cannot("asking")(TlsFailure::Encrypted.into_io()));
            }
            Err(_) => return Ok(None),
        }
        match stream.read(&mut buffer).map_err(cannot("no answer within 10 s from"))? {
            0 => return Ok(None),
            count => inbound.extend_from_slice(&buffer[..count]),
        }
    }
}

/// The value of the header `Server` of a head.
fn name(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut named = fields.filter(|(name, _)| name.eq_ignore_ascii_case("server"));
    named.next().map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_found_whatever_its_case() {
        assert_eq!(
            name(b"HTTP/1.1 200 OK\r\nserver:  nginx/1.22.1 \r\n\r\n").as_deref(),
            Some("nginx/1.22.1")
        );
        assert_eq!(name(b"HTTP/1.1 200 OK\r\nX-Server: a\r\n\r\n"), None);
    }
}
