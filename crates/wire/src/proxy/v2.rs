//! Version 2: binary (section 2.2).

use std::net::{IpAddr, SocketAddr};

use super::header::{Decoded, ProxyError};
use super::limits::{V2_BYTES_MAX, V2_PREFIX_BYTES};

pub(super) const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Commands, the lower half of byte 12.
const LOCAL: u8 = 0;
const PROXY: u8 = 1;

/// Decodes bytes that begin like the signature.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, ProxyError> {
    let Some(prefix) = bytes.first_chunk::<V2_PREFIX_BYTES>() else {
        return Ok(Decoded::Incomplete { needs: V2_PREFIX_BYTES - bytes.len() });
    };
    let [.., version_and_command, family, high, low] = *prefix;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if version_and_command >> 4 != 2 {
        return Err(ProxyError::Malformed("the version is not 2"));
    }
    let command = version_and_command & 0x0F;
    if command != LOCAL && command != PROXY {
        return Err(ProxyError::Malformed("the command is neither LOCAL nor PROXY"));
    }
    let whole = V2_PREFIX_BYTES + length;
    if whole > V2_BYTES_MAX {
        return Err(ProxyError::TooLong { limit: V2_BYTES_MAX });
    }
    let Some(content) = bytes.get(V2_PREFIX_BYTES..whole) else {
        return Ok(Decoded::Incomplete { needs: whole - bytes.len() });
    };
    // With LOCAL the receiver ignores family and addresses.
    let client = if command == LOCAL { None } else { client(family, content)? };
    Ok(Decoded::Header { client, bytes: whole })
}

/// The source address. The extensions (TLV) after the addresses are not read.
fn client(family: u8, content: &[u8]) -> Result<Option<SocketAddr>, ProxyError> {
    let short = ProxyError::Malformed("it is too short for the addresses of its family");
    let port =
        |at: usize| content.get(at..at + 2).map(|port| u16::from_be_bytes([port[0], port[1]])).ok_or(short);
    match family {
        // TCP over IPv4: two addresses of 4 bytes, two ports.
        0x11 => {
            let (address, port) = (content.first_chunk::<4>().ok_or(short)?, port(8)?);
            content.get(..12).ok_or(short)?;
            Ok(Some(SocketAddr::new(IpAddr::from(*address), port)))
        }
        // TCP over IPv6: two addresses of 16 bytes, two ports.
        0x21 => {
            let (address, port) = (content.first_chunk::<16>().ok_or(short)?, port(32)?);
            content.get(..36).ok_or(short)?;
            Ok(Some(SocketAddr::new(IpAddr::from(*address), port)))
        }
        // Unspecified, UDP and Unix sockets: no client of TCP. The receiver may use the address of the connection.
        0x00 | 0x12 | 0x22 | 0x31 | 0x32 => Ok(None),
        _ => Err(ProxyError::Malformed("unknown address family or transport")),
    }
}
