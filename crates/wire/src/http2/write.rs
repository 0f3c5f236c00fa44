//! Writes frames.

use super::frame::{FrameKind, flag};

/// Appends the header of a frame; its payload of `length` bytes follows.
pub fn header(out: &mut Vec<u8>, length: usize, kind: FrameKind, flags: u8, stream: u32) {
    let length = (length as u32).to_be_bytes();
    let stream = stream.to_be_bytes();
    out.extend_from_slice(&[
        length[1],
        length[2],
        length[3],
        kind.number(),
        flags,
        stream[0],
        stream[1],
        stream[2],
        stream[3],
    ]);
}

/// Appends SETTINGS.
pub fn settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    header(out, settings.len() * 6, FrameKind::Settings, 0, 0);
    for (number, value) in settings {
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of SETTINGS.
pub fn settings_ack(out: &mut Vec<u8>) {
    header(out, 0, FrameKind::Settings, flag::ACK, 0);
}

/// Appends the answer to a PING.
pub fn ping_ack(out: &mut Vec<u8>, payload: &[u8]) {
    header(out, payload.len(), FrameKind::Ping, flag::ACK, 0);
    out.extend_from_slice(payload);
}

/// Appends WINDOW_UPDATE of a stream, or of the connection with stream 0.
pub fn window_update(out: &mut Vec<u8>, stream: u32, more: u32) {
    header(out, 4, FrameKind::WindowUpdate, 0, stream);
    out.extend_from_slice(&more.to_be_bytes());
}
