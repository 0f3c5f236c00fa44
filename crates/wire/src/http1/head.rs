//! The head of an answer: status, framing and connection, by which a client finds the end of the answer.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response, Status};

use super::limits::{HEAD_BYTES_MAX, HEADERS_MAX};

/// The framing of a body (RFC 9112, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body: an answer to HEAD, or of status 1xx, 204 or 304.
    Empty,
    /// A body of this many bytes.
    Length(u64),
    /// Chunks with their sizes.
    Chunked,
    /// The body ends with the connection.
    UntilClose,
}

/// The head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The status, 100 to 999.
    pub status: u16,
    /// Framing of the body.
    pub framing: Framing,
    /// Whether the server keeps the connection open after this answer.
    pub keeps_open: bool,
    /// Bytes of the head, including the empty line.
    pub bytes: usize,
}

/// Bytes that are not an HTTP answer/1.x.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The status line or a header is malformed.
    #[error("the head `{text}` is not one of HTTP/1.1: {what}")]
    Head {
        /// Its beginning.
        text: String,
        /// The fault.
        what: String,
    },
    /// A header with the framing is malformed.
    #[error("`{name}: {value}`: {what}")]
    Length {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// The fault.
        what: &'static str,
    },
    /// A chunk lacks its size at the beginning or CR LF at the end.
    #[error("`{text}` {what}")]
    Chunk {
        /// The actual bytes.
        text: String,
        /// The expected content.
        what: &'static str,
    },
    /// A part of the answer exceeds a limit.
    #[error("{what} is longer than the limit of {limit} bytes")]
    TooLong {
        /// The part.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The connection ended inside an answer.
    #[error("the connection ended inside an answer: {what}")]
    Cut {
        /// The missing part.
        what: &'static str,
    },
}

/// Longest piece of the server's bytes in an error text.
const QUOTE_BYTES: usize = 60;

pub(super) fn quote(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(QUOTE_BYTES)].escape_ascii().to_string()
}

/// The head at the beginning of `bytes`; `None` when more bytes are needed. `to_head` means that the request was HEAD.
pub fn head(bytes: &[u8], to_head: bool) -> Result<Option<Head>, DecodeError> {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADERS_MAX];
    let mut response = Response::new(&mut []);
    let parsed =
        ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
    let length = match parsed {
        Ok(Status::Complete(length)) if length <= HEAD_BYTES_MAX => length,
        Ok(Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(_) => return Err(DecodeError::TooLong { what: "the head of an answer", limit: HEAD_BYTES_MAX }),
        Err(error) => return Err(DecodeError::Head { text: quote(bytes), what: error.to_string() }),
    };
    let mut said = HeadFields::default();
    for header in response.headers.iter() {
        said.hear(header)?;
    }
    let status = response.code.unwrap_or(0);
    if status < 100 {
        return Err(DecodeError::Head { text: quote(bytes), what: "a status has three digits".to_owned() });
    }
    let framing = said.framing(status, to_head);
    let keeps_open = match response.version {
        Some(0) => said.keep_alive,
        _ => !said.close,
    };
    let keeps_open = keeps_open && framing != Framing::UntilClose;
    Ok(Some(Head { status, framing, keeps_open, bytes: length }))
}

/// The framing and the connection option in the headers.
#[derive(Debug, Default)]
struct HeadFields {
    length: Option<u64>,
    /// Whether a transfer coding is the last one and whether it is `chunked`.
    coding: Option<bool>,
    close: bool,
    keep_alive: bool,
}

impl HeadFields {
    fn hear(&mut self, header: &Header<'_>) -> Result<(), DecodeError> {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        // The length rules out most headers.
        match header.name.len() {
            10 if is("connection") => {
                for word in words(header.value) {
                    self.close |= word.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= word.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if is("content-length") => self.hear_length(header.value)?,
            17 if is("transfer-encoding") => {
                let last = words(header.value).last();
                self.coding = last.map(|word| word.eq_ignore_ascii_case(b"chunked")).or(self.coding);
            }
            _ => {}
        }
        Ok(())
    }

    fn hear_length(&mut self, value: &[u8]) -> Result<(), DecodeError> {
        let wrong = |what| DecodeError::Length { name: "Content-Length", value: quote(value), what };
        let digits = value.trim_ascii();
        let length = std::str::from_utf8(digits)
            .ok()
            .filter(|_| digits.iter().all(u8::is_ascii_digit))
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| wrong("it is not a number of bytes"))?;
        if self.length.is_some_and(|before| before != length) {
            return Err(wrong("there is another one that says otherwise"));
        }
        self.length = Some(length);
        Ok(())
    }

    fn framing(&self, status: u16, to_head: bool) -> Framing {
        match (self.coding, self.length) {
            _ if to_head || status < 200 || status == 204 || status == 304 => Framing::Empty,
            (Some(true), _) => Framing::Chunked,
            (Some(false), _) | (None, None) => Framing::UntilClose,
            (None, Some(length)) => Framing::Length(length),
        }
    }
}

/// The members of a comma-separated list.
fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|word| !word.is_empty())
}
