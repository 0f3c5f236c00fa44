//! Version 1: one line of text (section 2.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::header::{Decoded, ProxyError};
use super::limits::{V1_BYTES_MAX, V1_BYTES_MIN};

pub(super) const SIGNATURE: &[u8] = b"PROXY ";

/// Decodes bytes that begin like the signature.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, ProxyError> {
    let looked_at = &bytes[..bytes.len().min(V1_BYTES_MAX)];
    let Some(end) = looked_at.iter().position(|byte| *byte == b'\n') else {
        if bytes.len() >= V1_BYTES_MAX {
            return Err(ProxyError::TooLong { limit: V1_BYTES_MAX });
        }
        let line_end = if bytes.last() == Some(&b'\r') { 1 } else { 2 };
        let needs = line_end.max(V1_BYTES_MIN.saturating_sub(bytes.len())).min(V1_BYTES_MAX - bytes.len());
        return Ok(Decoded::Incomplete { needs });
    };
    let line = bytes[..end].strip_suffix(b"\r");
    let line = line.ok_or(ProxyError::Malformed("the line does not end with CR LF"))?;
    let line = str::from_utf8(line).map_err(|_| ProxyError::Malformed("the line is not ASCII"))?;
    Ok(Decoded::Header { client: client(line)?, bytes: end + 1 })
}

fn client(line: &str) -> Result<Option<SocketAddr>, ProxyError> {
    let mut words = line.split(' ').skip(1);
    let mut next = || words.next();
    let addresses: [Option<IpAddr>; 2] = match next() {
        Some("TCP4") => [next(), next()].map(|word| word?.parse::<Ipv4Addr>().ok().map(IpAddr::V4)),
        Some("TCP6") => [next(), next()].map(|word| word?.parse::<Ipv6Addr>().ok().map(IpAddr::V6)),
        // The receiver ignores the rest of the line.
        Some("UNKNOWN") => return Ok(None),
        _ => return Err(ProxyError::Malformed("the protocol is not TCP4, TCP6 or UNKNOWN")),
    };
    let [Some(source), Some(_)] = addresses else {
        return Err(ProxyError::Malformed("an address is not one of its family"));
    };
    let [Some(port), Some(_)] = [next(), next()].map(|word| port(word?)) else {
        return Err(ProxyError::Malformed("a port is not a number from 0 to 65535"));
    };
    match words.next() {
        None => Ok(Some(SocketAddr::new(source, port))),
        Some(_) => Err(ProxyError::Malformed("words follow the ports")),
    }
}

/// A port in decimal digits, without leading zeros.
fn port(word: &str) -> Option<u16> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    word.parse().ok().filter(|_| is_plain)
}
