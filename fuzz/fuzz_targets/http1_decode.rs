//! HTTP/1: what a server says is refused or understood, and it means the same however it is cut into pieces on its way.
//!
//! The first byte of the input states whether the requests were HEAD (odd), the rest is what comes on the connection.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::http1::limits::CHUNK_LINE_BYTES_MAX;
use wire::http1::{Answers, Framing, Piece};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, stream)) = input.split_first() else { return };
    let to_head = choice % 2 == 1;
    let at_once = follow(stream, to_head, stream.len().max(1));
    // A line that is there as a whole may be longer than one that is waited for.
    if stream.len() < CHUNK_LINE_BYTES_MAX {
        assert_eq!(at_once, follow(stream, to_head, 1), "byte by byte: {}", stream.escape_ascii());
    }
});

/// What was heard: heads with what follows them.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    answers: Vec<(u16, Framing, Vec<u8>, bool)>,
    is_refused: bool,
    /// What the end of the connection means; `None` when nothing was to come any more.
    end: Option<Result<bool, ()>>,
}

/// Takes piece after piece, the way a client does, with that many bytes at a time.
fn follow(stream: &[u8], to_head: bool, step: usize) -> Heard {
    let mut answers = Answers::default();
    let mut heard = Heard::default();
    let (mut at, mut there) = (0, 0);
    while there < stream.len() {
        there = (there + step).min(stream.len());
        loop {
            let rest = &stream[at..there];
            let (piece, used) = match answers.next(rest, to_head) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    heard.is_refused = true;
                    return heard;
                }
            };
            assert!(used <= rest.len() && (used > 0 || piece == Piece::End), "{piece:?} takes {used}");
            at += used;
            match piece {
                Piece::Head(head) => {
                    assert!((200..=999).contains(&head.status) && head.bytes <= at, "{head:?}");
                    assert!(!head.keeps_open || head.framing != Framing::UntilClose, "{head:?}");
                    heard.answers.push((head.status, head.framing, Vec::new(), head.keeps_open));
                }
                Piece::Body(part) if part.is_empty() => {}
                Piece::Body(part) => {
                    let answer = heard.answers.last_mut().expect("a body has a head");
                    answer.2.extend_from_slice(part);
                    if let Framing::Length(length) = answer.1 {
                        assert!(answer.2.len() as u64 <= length);
                    }
                }
                Piece::End => {
                    let (_, framing, body, keeps_open) = heard.answers.last().expect("an end has a head");
                    match framing {
                        Framing::Empty => assert!(body.is_empty()),
                        Framing::Length(length) => assert_eq!(body.len() as u64, *length),
                        Framing::Chunked => {}
                        Framing::UntilClose => panic!("only the end of the connection ends this"),
                    }
                    if !keeps_open {
                        return heard;
                    }
                }
            }
        }
    }
    heard.end = Some(answers.closed().map_err(|_| ()));
    heard
}
