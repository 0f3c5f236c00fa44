//! Frames of a server, which are not masked (section 5.1).

use super::CloseCode;

const FINAL_BINARY: u8 = 0x82;
const FINAL_CLOSE: u8 = 0x88;
pub(super) const FINAL_PONG: u8 = 0x8A;

/// Appends a message with these bytes.
pub fn write_binary(bytes: &[u8], out: &mut Vec<u8>) {
    write_frame(FINAL_BINARY, bytes, out);
}

/// Appends a close frame.
pub fn write_close(code: CloseCode, out: &mut Vec<u8>) {
    write_frame(FINAL_CLOSE, &code.0.to_be_bytes(), out);
}

pub(super) fn write_frame(first: u8, payload: &[u8], out: &mut Vec<u8>) {
    write_head(first, 0, payload.len(), out);
    out.extend_from_slice(payload);
}

/// Appends the head of a frame: its first byte, and the length of its payload beside the bit that states whether it is masked.
pub(super) fn write_head(first: u8, masked: u8, length: usize, out: &mut Vec<u8>) {
    out.push(first);
    // The length takes 7, 16 or 64 bits (section 5.2).
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length @ ..126), _) => out.push(masked | length),
        (_, Ok(length)) => {
            out.push(masked | 126);
            out.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            out.push(masked | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}
