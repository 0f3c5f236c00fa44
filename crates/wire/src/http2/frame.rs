//! Parses frames.

use super::limits::FRAME_HEADER_BYTES;

/// Flags of frames.
pub mod flag {
    /// DATA and HEADERS: the last frame of its stream.
    pub const END_STREAM: u8 = 1;
    /// SETTINGS and PING: an acknowledgement.
    pub const ACK: u8 = 1;
    /// HEADERS and CONTINUATION: the last frame of the header block.
    pub const END_HEADERS: u8 = 4;
    /// DATA and HEADERS: there is padding.
    pub const PADDED: u8 = 8;
    /// HEADERS: there is a priority.
    pub const PRIORITY: u8 = 0x20;
}

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Bytes of a body.
    Data,
    /// Beginning of a request, an answer or a trailer.
    Headers,
    /// PRIORITY, which is obsolete.
    Priority,
    /// The end of one stream.
    RstStream,
    /// Settings of the sender.
    Settings,
    /// A stream that the server opens.
    PushPromise,
    /// A liveness check.
    Ping,
    /// The sender accepts no further streams on this connection.
    GoAway,
    /// The receiver of the frame may send more bytes.
    WindowUpdate,
    /// Continuation of a header block.
    Continuation,
    /// An unknown kind, to be ignored.
    Unknown(u8),
}

impl FrameKind {
    fn of(number: u8) -> Self {
        match number {
            0 => Self::Data,
            1 => Self::Headers,
            2 => Self::Priority,
            3 => Self::RstStream,
            4 => Self::Settings,
            5 => Self::PushPromise,
            6 => Self::Ping,
            7 => Self::GoAway,
            8 => Self::WindowUpdate,
            9 => Self::Continuation,
            other => Self::Unknown(other),
        }
    }

    pub(super) fn number(self) -> u8 {
        match self {
            Self::Data => 0,
            Self::Headers => 1,
            Self::Priority => 2,
            Self::RstStream => 3,
            Self::Settings => 4,
            Self::PushPromise => 5,
            Self::Ping => 6,
            Self::GoAway => 7,
            Self::WindowUpdate => 8,
            Self::Continuation => 9,
            Self::Unknown(number) => number,
        }
    }
}

/// A received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// FrameKind of the frame.
    pub kind: FrameKind,
    /// Its flags; see [`flag`].
    pub flags: u8,
    /// Id of its stream; 0 for the connection.
    pub stream: u32,
    /// Payload after the frame header.
    pub payload: &'a [u8],
}

/// Bytes that are not HTTP/2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A frame is longer than the receiver allows.
    #[error("a frame of {length} bytes is longer than the limit of {limit}")]
    FrameTooLong {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A frame has a wrong form for its kind.
    #[error("a frame {kind:?} of {length} bytes: {what}")]
    Frame {
        /// Its kind.
        kind: FrameKind,
        /// Length of its payload.
        length: usize,
        /// The fault.
        what: &'static str,
    },
    /// A header block is malformed.
    #[error("headers: {what}")]
    Headers {
        /// The fault.
        what: &'static str,
    },
}

/// The frame at the beginning of `bytes`, and its whole length; `None` when more bytes are needed. `limit` is the largest
/// payload that the receiver has announced.
pub fn frame(bytes: &[u8], limit: usize) -> Result<Option<(Frame<'_>, usize)>, DecodeError> {
    let Some((header, rest)) = bytes.split_at_checked(FRAME_HEADER_BYTES) else { return Ok(None) };
    let length = usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2]);
    if length > limit {
        return Err(DecodeError::FrameTooLong { length, limit });
    }
    let Some(payload) = rest.get(..length) else { return Ok(None) };
    let found =
        Frame { kind: FrameKind::of(header[3]), flags: header[4], stream: number(&header[5..9]), payload };
    Ok(Some((found, FRAME_HEADER_BYTES + length)))
}

/// A 31-bit number; the first bit is reserved.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)) & 0x7fff_ffff
}

impl<'a> Frame<'a> {
    /// Whether the flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn wrong(&self, what: &'static str) -> DecodeError {
        DecodeError::Frame { kind: self.kind, length: self.payload.len(), what }
    }

    /// The payload of DATA or HEADERS without padding and priority.
    pub fn content(&self) -> Result<&'a [u8], DecodeError> {
        let mut content = self.payload;
        let mut padding = 0;
        if self.has(flag::PADDED) {
            let (first, rest) = content.split_first().ok_or_else(|| self.wrong("no length of padding"))?;
            (padding, content) = (usize::from(*first), rest);
        }
        if self.kind == FrameKind::Headers && self.has(flag::PRIORITY) {
            content = content.get(5..).ok_or_else(|| self.wrong("no priority"))?;
        }
        let length =
            content.len().checked_sub(padding).ok_or_else(|| self.wrong("more padding than bytes"))?;
        Ok(&content[..length])
    }

    /// The settings in SETTINGS.
    pub fn settings(&self) -> Result<Settings<'a>, DecodeError> {
        if !self.payload.len().is_multiple_of(6) {
            return Err(self.wrong("a setting has six bytes"));
        }
        Ok(Settings { rest: self.payload })
    }

    /// The number in WINDOW_UPDATE or RST_STREAM, or at the beginning of GOAWAY.
    pub fn first_number(&self) -> Result<u32, DecodeError> {
        self.payload.get(..4).map(number).ok_or_else(|| self.wrong("no number"))
    }

    /// The error code of GOAWAY and the text behind it.
    pub fn last_words(&self) -> Result<(u32, &'a [u8]), DecodeError> {
        let code = self.payload.get(4..8).ok_or_else(|| self.wrong("no error code"))?;
        let code = code.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        Ok((code, &self.payload[8..]))
    }
}

/// Settings in their order: number and value.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    rest: &'a [u8],
}

impl Iterator for Settings<'_> {
    type Item = (u16, u32);

    fn next(&mut self) -> Option<Self::Item> {
        let (setting, rest) = self.rest.split_at_checked(6)?;
        self.rest = rest;
        let value = setting[2..].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        Some((u16::from_be_bytes([setting[0], setting[1]]), value))
    }
}

/// The name of an error code (RFC 9113, 7).
pub fn reason(code: u32) -> &'static str {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    NAMES.get(code as usize).copied().unwrap_or("an unknown reason")
}
