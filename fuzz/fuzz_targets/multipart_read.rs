//! Forms with files: refused, or the same parts however the bytes are cut into pieces.
//!
//! The first byte of the input is the length of a piece, then comes the Content-Type up to a line end, and the form.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::multipart::{Event, Multipart, MultipartError, PartHead, boundary};

fuzz_target!(|input: &[u8]| {
    let Some((&length, rest)) = input.split_first() else { return };
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return };
    let (content_type, form) = (&rest[..end], &rest[end + 1..]);
    let Some(boundary) = std::str::from_utf8(content_type).ok().and_then(boundary) else { return };
    assert!(!boundary.is_empty());
    let whole = read(boundary, form, form.len().max(1));
    assert_eq!(read(boundary, form, usize::from(length).max(1)), whole);
    let Ok(Read { parts, is_complete: true }) = whole else { return };
    let bytes: usize = parts.iter().map(|(_, data)| data.len()).sum();
    assert!(bytes <= form.len(), "parts have no more bytes than the form");
});

#[derive(Debug, PartialEq, Eq)]
struct Read {
    parts: Vec<(PartHead, Vec<u8>)>,
    is_complete: bool,
}

fn read(boundary: &str, form: &[u8], length: usize) -> Result<Read, MultipartError> {
    let mut reader = Multipart::new(boundary);
    let mut parts: Vec<(PartHead, Vec<u8>)> = Vec::new();
    for piece in form.chunks(length) {
        reader.push(piece);
        while let Some(event) = reader.next_event()? {
            match event {
                Event::Part(head) => parts.push((head, Vec::new())),
                Event::Data(data) => {
                    assert!(!data.is_empty());
                    parts.last_mut().expect("data belongs to a part").1.extend(data);
                }
                Event::End => return Ok(Read { parts, is_complete: true }),
            }
        }
    }
    // How much of an open part is known depends on the pieces.
    parts.pop();
    Ok(Read { parts, is_complete: false })
}
