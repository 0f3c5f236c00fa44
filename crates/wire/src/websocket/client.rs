//! Frames as a client reads and writes them: those of a server are not masked, its own are (section 5.1).

use super::reader::payload_length;
use super::write::write_head;
use super::{CONTROL_BYTES_MAX, CloseCode, Fault};

/// A key of the opening handshake (section 4.1): that of the standard's example. A client that trusts its server needs no other.
pub const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
/// What a server of WebSockets answers to [`KEY`] in `Sec-WebSocket-Accept`.
pub const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

const FINAL: u8 = 0x80;
const RESERVED: u8 = 0x70;
const OPCODE: u8 = 0x0F;
const MASKED: u8 = 0x80;

/// The kind of a frame (section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// The next part of a message.
    Continuation,
    /// A text, or its first part.
    Text,
    /// Bytes, or their first part.
    Binary,
    /// The end of the connection: a code and a reason.
    Close,
    /// To be answered with a pong of the same payload.
    Ping,
    /// The answer to a ping.
    Pong,
}

impl FrameKind {
    fn of(opcode: u8) -> Option<Self> {
        Some(match opcode {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xA => Self::Pong,
            _ => return None,
        })
    }

    const fn opcode(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xA,
        }
    }

    const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// A frame of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its kind.
    pub kind: FrameKind,
    /// Whether it is the last one of its message.
    pub is_final: bool,
    /// Its payload.
    pub payload: &'a [u8],
}

/// The frame at the beginning of `bytes`, and its length; `None` while it is incomplete.
///
/// # Errors
/// The server broke the protocol, or the payload has more than `payload_bytes_max` bytes.
pub fn frame(bytes: &[u8], payload_bytes_max: usize) -> Result<Option<(Frame<'_>, usize)>, Fault> {
    let broken = |reason| Fault { code: CloseCode::PROTOCOL_ERROR, reason };
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    if first & RESERVED != 0 {
        return Err(broken("a frame uses an extension that was not agreed on"));
    }
    let kind = FrameKind::of(first & OPCODE).ok_or_else(|| broken("unknown opcode"))?;
    if second & MASKED != 0 {
        return Err(broken("a frame of a server is masked"));
    }
    let Some((length, rest)) = payload_length(*second, rest) else { return Ok(None) };
    let is_final = first & FINAL != 0;
    if kind.is_control() && (!is_final || length > CONTROL_BYTES_MAX as u64) {
        return Err(broken("a control frame is too long or in pieces"));
    }
    let Some(length) = usize::try_from(length).ok().filter(|length| *length <= payload_bytes_max) else {
        return Err(Fault { code: CloseCode::TOO_LONG, reason: "a frame is longer than the limit" });
    };
    let head = bytes.len() - rest.len();
    Ok(rest.get(..length).map(|payload| (Frame { kind, is_final, payload }, head + length)))
}

/// Appends a whole message or a control frame, masked with these bytes.
pub fn write(kind: FrameKind, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
    write_head(FINAL | kind.opcode(), MASKED, payload.len(), out);
    out.extend_from_slice(&mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
}

#[cfg(test)]
mod tests {
    use super::super::FrameReader;
    use super::*;

    const MAX: usize = 1 << 20;

    #[test]
    fn a_server_reads_what_a_client_writes() {
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut bytes = Vec::new();
            write(FrameKind::Binary, &payload, [1, 2, 3, 4], &mut bytes);
            let taken = FrameReader::default().read(&mut bytes, &mut Vec::new()).unwrap();
            assert_eq!(&bytes[..taken.bytes], payload, "{length}");
        }
    }

    #[test]
    fn a_frame_comes_out_whole_however_it_arrives() {
        for length in [0, 125, 126, 65_535, 65_536] {
            let payload = vec![b'x'; length];
            let mut bytes = Vec::new();
            super::super::write_binary(&payload, &mut bytes);
            let whole = bytes.len();
            bytes.extend_from_slice(&[0x89, 0]);
            for cut in [0, 1, 2, 3, 9, whole - 1] {
                assert_eq!(frame(&bytes[..cut.min(whole - 1)], MAX).unwrap(), None, "{length}: {cut}");
            }
            let expected = Frame { kind: FrameKind::Binary, is_final: true, payload: &payload };
            assert_eq!(frame(&bytes, MAX).unwrap(), Some((expected, whole)));
            let ping = Frame { kind: FrameKind::Ping, is_final: true, payload: &[] };
            assert_eq!(frame(&bytes[whole..], MAX).unwrap(), Some((ping, 2)));
        }
    }

    #[test]
    fn a_server_that_breaks_the_protocol_is_told_so() {
        for (bytes, reason) in [
            (&[0xC1, 0][..], "extension"),
            (&[0x83, 0], "opcode"),
            (&[0x81, 0x80], "masked"),
            (&[0x09, 0], "control frame"),
            (&[0x89, 126, 0, 126], "control frame"),
            (&[0x82, 126, 0, 200], "longer"),
            (&[0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255], "longer"),
        ] {
            let fault = frame(bytes, 199).unwrap_err();
            assert!(fault.reason.contains(reason), "{bytes:?}: {fault}");
        }
    }
}
