//! A WebSocket of a client: the handshake, messages in frames, pongs.

use std::borrow::Cow;

use clients::limits::HTTP_QUOTE_CHARS;
use wire::http1::{head, write};
use wire::websocket::CloseCode;
use wire::websocket::client::{ACCEPT, Frame, FrameKind, KEY, frame, write as write_frame};

use crate::limits::SOCKET_MESSAGE_BYTES_MAX;

const SWITCHING: u16 = 101;
/// What hides the payloads of a client from proxies. It is not a secret, and the load has no proxy.
const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

/// The state of a connection.
#[derive(Debug, Default)]
pub(super) struct Link {
    is_open: bool,
    /// The text that has come in parts so far.
    parts: Option<Vec<u8>>,
}

/// What has arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard<'a> {
    /// The handshake is over.
    Open,
    Text(Cow<'a, [u8]>),
    /// Nothing for the application.
    Nothing,
}

/// Appends a message with a text.
pub(super) fn say(text: &str, out: &mut Vec<u8>) {
    write_frame(FrameKind::Text, text.as_bytes(), MASK, out);
}

impl Link {
    /// Begins the handshake of a new connection.
    pub(super) fn open(&mut self, host: &str, path: &str, out: &mut Vec<u8>) {
        *self = Self::default();
        write::start(out, "GET", path);
        for (name, value) in [
            ("Host", host),
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", KEY),
        ] {
            write::header(out, name, value);
        }
        write::end(out);
    }

    /// Ends an open connection in order.
    pub(super) fn close(&self, out: &mut Vec<u8>) {
        if self.is_open {
            write_frame(FrameKind::Close, &CloseCode::NORMAL.0.to_be_bytes(), MASK, out);
        }
    }

    /// What is at the beginning of `bytes`, and its length; `None` when more bytes are needed. Pongs go to `out`.
    pub(super) fn next<'a>(
        &mut self,
        bytes: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(Heard<'a>, usize)>, String> {
        if !self.is_open {
            return self.switched(bytes);
        }
        let next = frame(bytes, SOCKET_MESSAGE_BYTES_MAX).map_err(|fault| fault.to_string())?;
        let Some((Frame { kind, is_final, payload }, length)) = next else { return Ok(None) };
        let heard = match (kind, self.parts.take()) {
            (FrameKind::Ping, parts) => {
                self.parts = parts;
                write_frame(FrameKind::Pong, payload, MASK, out);
                Heard::Nothing
            }
            (FrameKind::Pong, parts) => {
                self.parts = parts;
                Heard::Nothing
            }
            (FrameKind::Close, _) => return Err(closed(payload)),
            (FrameKind::Binary, _) => return Err("a binary message, where texts are expected".to_owned()),
            (FrameKind::Text, None) if is_final => Heard::Text(Cow::Borrowed(payload)),
            (FrameKind::Text, None) => {
                self.parts = Some(payload.to_vec());
                Heard::Nothing
            }
            (FrameKind::Continuation, Some(mut parts)) => {
                if parts.len() + payload.len() > SOCKET_MESSAGE_BYTES_MAX {
                    return Err(format!("a message of more than {SOCKET_MESSAGE_BYTES_MAX} bytes"));
                }
                parts.extend_from_slice(payload);
                if is_final {
                    Heard::Text(Cow::Owned(parts))
                } else {
                    self.parts = Some(parts);
                    Heard::Nothing
                }
            }
            (FrameKind::Text, Some(_)) | (FrameKind::Continuation, None) => {
                return Err("a part of a message that was not begun, or not ended".to_owned());
            }
        };
        Ok(Some((heard, length)))
    }

    /// The answer to the handshake.
    fn switched<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<(Heard<'a>, usize)>, String> {
        let Some(found) = head(bytes, false).map_err(|error| error.to_string())? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes[..found.bytes]);
        if found.status != SWITCHING || !text.contains(ACCEPT) {
            let quote: String = String::from_utf8_lossy(bytes).chars().take(HTTP_QUOTE_CHARS).collect();
            return Err(format!("the server does not switch to WebSocket: {quote}"));
        }
        self.is_open = true;
        Ok(Some((Heard::Open, found.bytes)))
    }
}

/// The reason of a close frame, in words.
fn closed(payload: &[u8]) -> String {
    match payload {
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            format!("the server closed the WebSocket: code {code}, {}", String::from_utf8_lossy(reason))
        }
        _ => "the server closed the WebSocket without a code".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_link() -> Link {
        let (mut link, mut out) = (Link::default(), Vec::new());
        link.open("h:1", "/api/ws", &mut out);
        let request = String::from_utf8(out).unwrap();
        assert!(request.starts_with("GET /api/ws HTTP/1.1\r\nHost: h:1\r\n"), "{request}");
        let answer = format!("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {ACCEPT}\r\n\r\n");
        assert_eq!(link.next(&answer.as_bytes()[..20], &mut Vec::new()).unwrap(), None);
        let opened = link.next(answer.as_bytes(), &mut Vec::new()).unwrap();
        assert_eq!(opened, Some((Heard::Open, answer.len())));
        link
    }

    fn text(link: &mut Link, bytes: &[u8], out: &mut Vec<u8>) -> Option<String> {
        match link.next(bytes, out).unwrap().unwrap() {
            (Heard::Text(text), length) if length == bytes.len() => {
                Some(String::from_utf8(text.into_owned()).unwrap())
            }
            (heard, _) => {
                assert_eq!(heard, Heard::Nothing);
                None
            }
        }
    }

    #[test]
    fn a_text_in_parts_is_one_text_and_a_ping_between_them_gets_its_pong() {
        let (mut link, mut out) = (open_link(), Vec::new());
        assert_eq!(text(&mut link, b"\x81\x02ab", &mut out).as_deref(), Some("ab"));
        assert_eq!(text(&mut link, b"\x01\x01c", &mut out), None);
        assert_eq!(text(&mut link, b"\x00\x01d", &mut out), None);
        assert_eq!(text(&mut link, b"\x89\x01!", &mut out), None);
        assert_eq!((&out[..2], out[6]), (&[0x8A, 0x81][..], b'!' ^ MASK[0]));
        assert_eq!(text(&mut link, b"\x80\x01e", &mut out).as_deref(), Some("cde"));
    }

    #[test]
    fn an_end_has_its_reason() {
        let refused = |bytes: &[u8]| open_link().next(bytes, &mut Vec::new()).unwrap_err();
        assert!(refused(b"\x88\x06\x03\xf5slow").contains("code 1013, slow"));
        assert!(refused(b"\x80\x00").contains("not begun"));
        assert!(refused(b"\x82\x00").contains("binary"));
        let mut link = Link::default();
        let answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno";
        assert!(link.next(answer, &mut Vec::new()).unwrap_err().contains("401 Unauthorized"));
    }
}
