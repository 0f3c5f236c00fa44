//! Parses the answers of one connection, piece by piece.

use httparse::Status;

use super::head::{DecodeError, Framing, Head, head, quote};
use super::limits::CHUNK_LINE_BYTES_MAX;

/// A piece of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Status and headers. Interim answers (1xx) are skipped.
    Head(Head),
    /// Some bytes of the body, without framing.
    Body(&'a [u8]),
    /// The end of the answer. If its head does not keep the connection open, no other answer follows.
    End,
}

/// The state of parsing a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    at: At,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum At {
    #[default]
    Head,
    /// In a body; this many bytes are left.
    Body(u64),
    UntilClose,
    ChunkSize,
    /// In a chunk; this many bytes are left.
    Chunk(u64),
    ChunkEnd,
    Trailer,
}

impl Answers {
    /// The next piece at the beginning of `bytes`, and its length; `None` when more bytes are needed. `to_head` means that the
    /// request was HEAD.
    pub fn next<'a>(
        &mut self,
        bytes: &'a [u8],
        to_head: bool,
    ) -> Result<Option<(Piece<'a>, usize)>, DecodeError> {
        let mut skipped = 0;
        loop {
            let rest = &bytes[skipped..];
            match self.at {
                At::Head => {
                    let Some(found) = head(rest, to_head)? else { return Ok(skip(skipped)) };
                    skipped += found.bytes;
                    match found.status {
                        101 => return Err(switched(rest)),
                        100..200 => continue,
                        _ => {}
                    }
                    self.at = match found.framing {
                        Framing::Empty => At::Body(0),
                        Framing::Length(length) => At::Body(length),
                        Framing::Chunked => At::ChunkSize,
                        Framing::UntilClose => At::UntilClose,
                    };
                    return Ok(Some((Piece::Head(found), skipped)));
                }
                At::Body(0) => {
                    self.at = At::Head;
                    return Ok(Some((Piece::End, skipped)));
                }
                At::Body(left) => return Ok(self.body(rest, left, At::Body, skipped)),
                At::Chunk(left) => return Ok(self.body(rest, left, At::Chunk, skipped)),
                At::UntilClose => return Ok(self.body(rest, u64::MAX, |_| At::UntilClose, skipped)),
                At::ChunkSize => {
                    let Some((size, used)) = chunk_size(rest)? else { return Ok(skip(skipped)) };
                    skipped += used;
                    self.at = if size == 0 { At::Trailer } else { At::Chunk(size) };
                }
                At::ChunkEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        skipped += 2;
                        self.at = At::ChunkSize;
                    }
                    [] | [b'\r'] => return Ok(skip(skipped)),
                    _ => {
                        let what = "is where a chunk should end with CR LF";
                        return Err(DecodeError::Chunk { text: quote(rest), what });
                    }
                },
                At::Trailer => {
                    let Some(used) = line(rest, "a line of a trailer")? else { return Ok(skip(skipped)) };
                    skipped += used;
                    if rest[..used].trim_ascii().is_empty() {
                        self.at = At::Head;
                        return Ok(Some((Piece::End, skipped)));
                    }
                }
            }
        }
    }

    /// The server closed the connection. `Ok(true)` if this ends an answer, `Ok(false)` between two answers.
    pub fn closed(&mut self) -> Result<bool, DecodeError> {
        let what = match std::mem::take(&mut self.at) {
            At::Head => return Ok(false),
            At::UntilClose | At::Body(0) => return Ok(true),
            At::Body(_) => "bytes of the body that Content-Length announced",
            At::Chunk(_) | At::ChunkEnd | At::ChunkSize => "the last chunk",
            At::Trailer => "the empty line behind the last chunk",
        };
        Err(DecodeError::Cut { what })
    }

    fn body<'a>(
        &mut self,
        rest: &'a [u8],
        left: u64,
        then: impl FnOnce(u64) -> At,
        skipped: usize,
    ) -> Option<(Piece<'a>, usize)> {
        if rest.is_empty() {
            return skip(skipped);
        }
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
        self.at = match then(left - length as u64) {
            At::Chunk(0) => At::ChunkEnd,
            at => at,
        };
        Some((Piece::Body(&rest[..length]), skipped + length))
    }
}

/// More bytes are needed. Skipped bytes are returned as an empty piece of the body, so the caller does not pass them again.
fn skip<'a>(skipped: usize) -> Option<(Piece<'a>, usize)> {
    (skipped > 0).then_some((Piece::Body(&[]), skipped))
}

fn switched(rest: &[u8]) -> DecodeError {
    DecodeError::Head {
        text: quote(rest),
        what: "the server switches to another protocol unasked".to_owned(),
    }
}

fn chunk_size(rest: &[u8]) -> Result<Option<(u64, usize)>, DecodeError> {
    // An empty line is not a size, but httparse would parse it as 0.
    let parsed = match rest.first() {
        Some(first) if !first.is_ascii_hexdigit() => Err(httparse::InvalidChunkSize),
        _ => httparse::parse_chunk_size(rest),
    };
    match parsed {
        Ok(Status::Complete((used, size))) => Ok(Some((size, used))),
        Ok(Status::Partial) if rest.len() < CHUNK_LINE_BYTES_MAX => Ok(None),
        Ok(Status::Partial) => {
            Err(DecodeError::TooLong { what: "the line before a chunk", limit: CHUNK_LINE_BYTES_MAX })
        }
        Err(_) => {
            Err(DecodeError::Chunk { text: quote(rest), what: "is where the size of a chunk should be" })
        }
    }
}

/// Length of the first line, including its end.
fn line(rest: &[u8], what: &'static str) -> Result<Option<usize>, DecodeError> {
    match rest.iter().position(|byte| *byte == b'\n') {
        Some(end) if end < CHUNK_LINE_BYTES_MAX => Ok(Some(end + 1)),
        None if rest.len() < CHUNK_LINE_BYTES_MAX => Ok(None),
        _ => Err(DecodeError::TooLong { what, limit: CHUNK_LINE_BYTES_MAX }),
    }
}
