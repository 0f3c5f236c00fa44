//! Reads the frames of a client.

use super::write::{FINAL_PONG, write_close, write_frame};
use super::{ANSWERS_BYTES_MAX, CONTROL_BYTES_MAX, CloseCode};

/// Longest head of a frame: two bytes, a length of 64 bits, a mask.
const HEAD_BYTES_MAX: usize = 14;

/// Reads the frames of a client.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// The head of the next frame, as far as it has come.
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: usize,
    /// The frame whose payload comes.
    frame: Option<Frame>,
    /// A binary message has begun and its last frame has not.
    is_in_message: bool,
    control: Vec<u8>,
    is_closed: bool,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadBytes {
    /// Bytes of the stream, at the beginning of the buffer.
    pub bytes: usize,
    /// The client has closed the WebSocket.
    pub is_closed: bool,
}

/// The peer broke the protocol. [`FrameReader`] has appended the close frame with the code to its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (close code {})", .code.0)]
pub struct Fault {
    /// The code of the close frame.
    pub code: CloseCode,
    /// The broken rule.
    pub reason: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data { is_final: bool },
    Ping,
    Pong,
    Close,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    kind: Kind,
    mask: [u8; 4],
    left: u64,
}

impl FrameReader {
    /// Replaces the frames in `buffer` by the bytes that they carry. Appends pongs and the answer to a close frame to `answers`.
    ///
    /// # Errors
    /// The client broke the protocol. The connection must be closed after the answers.
    pub fn read(&mut self, buffer: &mut [u8], answers: &mut Vec<u8>) -> Result<ReadBytes, Fault> {
        let (mut read, mut taken) = (0, 0);
        while read < buffer.len() && !self.is_closed {
            let Some(frame) = &mut self.frame else {
                self.head[self.head_bytes] = buffer[read];
                self.head_bytes += 1;
                read += 1;
                self.begin_frame(answers)?;
                continue;
            };
            let bytes = usize::try_from(frame.left).unwrap_or(usize::MAX).min(buffer.len() - read);
            let part = &mut buffer[read..read + bytes];
            frame.unmask(part);
            if let Kind::Data { .. } = frame.kind {
                buffer.copy_within(read..read + bytes, taken);
                taken += bytes;
            } else {
                self.control.extend_from_slice(part);
            }
            read += bytes;
            self.end_frame(answers);
        }
        Ok(ReadBytes { bytes: taken, is_closed: self.is_closed })
    }

    /// Begins a frame if its head is complete.
    fn begin_frame(&mut self, answers: &mut Vec<u8>) -> Result<(), Fault> {
        match head(&self.head[..self.head_bytes], self.is_in_message) {
            Ok(None) => Ok(()),
            Ok(Some(frame)) => {
                self.head_bytes = 0;
                self.frame = Some(frame);
                // A frame without payload ends at once.
                self.end_frame(answers);
                Ok(())
            }
            Err(fault) => {
                self.is_closed = true;
                write_close(fault.code, answers);
                Err(fault)
            }
        }
    }

    /// Ends the frame if its payload is complete.
    fn end_frame(&mut self, answers: &mut Vec<u8>) {
        let Some(frame) = self.frame.take_if(|frame| frame.left == 0) else { return };
        match frame.kind {
            Kind::Data { is_final } => self.is_in_message = !is_final,
            Kind::Ping if answers.len() < ANSWERS_BYTES_MAX => {
                write_frame(FINAL_PONG, &self.control, answers)
            }
            Kind::Ping | Kind::Pong => {}
            Kind::Close => {
                self.is_closed = true;
                // The answer repeats the code (section 5.5.1).
                let code = self.control.first_chunk().map(|code| u16::from_be_bytes(*code));
                write_close(code.map_or(CloseCode::NORMAL, CloseCode), answers);
            }
        }
        self.control.clear();
    }
}

impl Frame {
    /// Removes the mask from the next bytes of the payload.
    fn unmask(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(4) {
            for (byte, mask) in chunk.iter_mut().zip(self.mask) {
                *byte ^= mask;
            }
        }
        self.mask.rotate_left(bytes.len() % 4);
        self.left -= bytes.len() as u64;
    }
}

/// The frame that a head begins; `None` while the head is incomplete (section 5.2).
fn head(head: &[u8], is_in_message: bool) -> Result<Option<Frame>, Fault> {
    let broken = |reason| Fault { code: CloseCode::PROTOCOL_ERROR, reason };
    let [first, second, rest @ ..] = head else { return Ok(None) };
    let is_final = first & 0x80 != 0;
    if first & 0x70 != 0 {
        return Err(broken("a frame uses an extension that was not agreed on"));
    }
    let kind = match (first & 0x0F, is_in_message) {
        (0x0, true) | (0x2, false) => Kind::Data { is_final },
        (0x0, false) => return Err(broken("a continued message was not begun")),
        (0x2, true) => return Err(broken("a message begins within another one")),
        (0x1, _) => {
            let reason = "a text message, where only binary ones are accepted";
            return Err(Fault { code: CloseCode::UNSUPPORTED, reason });
        }
        (0x8, _) => Kind::Close,
        (0x9, _) => Kind::Ping,
        (0xA, _) => Kind::Pong,
        _ => return Err(broken("unknown opcode")),
    };
    if second & 0x80 == 0 {
        return Err(broken("a frame of a client is not masked"));
    }
    let Some((length, rest)) = payload_length(second & 0x7F, rest) else { return Ok(None) };
    if !matches!(kind, Kind::Data { .. }) && (!is_final || length > CONTROL_BYTES_MAX as u64) {
        return Err(broken("a control frame is too long or in pieces"));
    }
    Ok(rest.first_chunk().map(|mask| Frame { kind, mask: *mask, left: length }))
}

/// The length of a payload, from the seven bits of a head and the bytes behind them, and the rest; `None` while it is incomplete.
pub(super) fn payload_length(bits: u8, rest: &[u8]) -> Option<(u64, &[u8])> {
    match bits {
        126 => rest.split_first_chunk().map(|(length, rest)| (u64::from(u16::from_be_bytes(*length)), rest)),
        127 => rest.split_first_chunk().map(|(length, rest)| (u64::from_be_bytes(*length), rest)),
        length => Some((u64::from(length), rest)),
    }
}
