//! Frames of a WebSocket client: refused or understood, and the same stream however the bytes are cut into pieces.
//!
//! The first byte of the input is the length of a piece, the rest is what comes on the connection.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::websocket::{ANSWERS_BYTES_MAX, CONTROL_BYTES_MAX, CloseCode, FrameReader};

/// The head of a frame with an answer.
const HEAD_BYTES: usize = 2;

fuzz_target!(|input: &[u8]| {
    let Some((&length, bytes)) = input.split_first() else { return };
    let pieces = read(bytes, usize::from(length.max(1)));
    let whole = read(bytes, bytes.len().max(1));
    assert_eq!((&pieces.answers, pieces.fault), (&whole.answers, whole.fault));
    if whole.fault.is_none() {
        assert_eq!((pieces.stream, pieces.is_closed), (whole.stream, whole.is_closed));
    }
    assert!(whole.answers.len() <= ANSWERS_BYTES_MAX + 2 * (HEAD_BYTES + CONTROL_BYTES_MAX));
});

#[derive(Debug, Default)]
struct Heard {
    stream: Vec<u8>,
    answers: Vec<u8>,
    is_closed: bool,
    fault: Option<CloseCode>,
}

fn read(bytes: &[u8], length: usize) -> Heard {
    let (mut reader, mut heard) = (FrameReader::default(), Heard::default());
    for piece in bytes.chunks(length) {
        let mut buffer = piece.to_vec();
        match reader.read(&mut buffer, &mut heard.answers) {
            Ok(taken) => {
                heard.stream.extend_from_slice(&buffer[..taken.bytes]);
                heard.is_closed = taken.is_closed;
            }
            Err(fault) => {
                assert!(!fault.to_string().is_empty());
                heard.fault = Some(fault.code);
                return heard;
            }
        }
    }
    heard
}
