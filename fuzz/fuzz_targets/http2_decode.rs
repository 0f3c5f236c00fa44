//! HTTP/2: frames are refused or understood, wait for their last byte, and can be written again; whatever is in one can be
//! read as every kind, and a status is one of three digits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::http2::limits::{FRAME_BYTES_MAX, FRAME_HEADER_BYTES};
use wire::http2::{Frame, frame, hpack, reason, write};

/// Where the reserved bit of the stream's number is.
const RESERVED: usize = 5;

fuzz_target!(|input: &[u8]| {
    let mut stream = input;
    loop {
        match frame(stream, FRAME_BYTES_MAX) {
            Ok(None) => break,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
            Ok(Some((found, used))) => {
                assert!(frame(&stream[..used - 1], FRAME_BYTES_MAX) == Ok(None));
                comes_back(&found, &stream[..used]);
                read_everything(&found);
                stream = &stream[used..];
            }
        }
    }
    // A block of headers without a frame around it.
    read_status(input);
});

fn comes_back(found: &Frame<'_>, bytes: &[u8]) {
    let mut again = Vec::new();
    write::header(&mut again, found.payload.len(), found.kind, found.flags, found.stream);
    assert_eq!(again.len(), FRAME_HEADER_BYTES);
    again.extend_from_slice(found.payload);
    let mut said = bytes.to_vec();
    said[RESERVED] &= 0x7f;
    assert_eq!(again, said);
}

/// Every view of a frame, whatever its kind is: a client asks before it looks.
fn read_everything(found: &Frame<'_>) {
    if let Ok(content) = found.content() {
        assert!(content.len() <= found.payload.len());
        read_status(content);
    }
    if let Ok(settings) = found.settings() {
        assert_eq!(settings.count() * 6, found.payload.len());
    }
    if let Ok(number) = found.first_number() {
        assert!(number <= 0x7fff_ffff);
    }
    if let Ok((code, text)) = found.last_words() {
        assert!(!reason(code).is_empty() && text.len() + 8 == found.payload.len());
    }
}

fn read_status(block: &[u8]) {
    let Ok(status) = hpack::status(block) else { return };
    assert!((100..=999).contains(&status), "{status}");
    let mut again = Vec::new();
    hpack::literal(&mut again, b":status", status.to_string().as_bytes());
    assert_eq!(hpack::status(&again), Ok(status));
}
