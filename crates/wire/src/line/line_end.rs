//! Finds the ends of lines that are not parsed.

use memchr::{memchr, memchr2};

use super::delimiters::{after_blanks, is_end};
use super::parse::{FaultyPart, closing_quote};

/// The end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// The offset after its line break.
    At(usize),
    /// The bytes have no line break after it.
    Missing,
    /// A text is open at the end of the bytes. With the offset after the first line break in it.
    InText(Option<usize>),
}

/// The end of the line that begins at `start` and has a fault at `at`.
pub(super) fn after_fault(bytes: &[u8], start: usize, at: usize, place: FaultyPart) -> usize {
    let end = match place {
        FaultyPart::Series => end_of(bytes, start, at, false),
        FaultyPart::Fields => end_of(bytes, start, at, true),
        FaultyPart::Text(opened) => LineEnd::InText(after_break(bytes, opened)),
    };
    match end {
        LineEnd::At(end) | LineEnd::InText(Some(end)) => end,
        LineEnd::Missing | LineEnd::InText(None) => bytes.len(),
    }
}

/// The end of the line at `start`, parsed or not.
pub(super) fn of_line(bytes: &[u8], start: usize) -> LineEnd {
    match bytes.get(after_blanks(bytes, start)) {
        Some(b'#') => after_break(bytes, start).map_or(LineEnd::Missing, LineEnd::At),
        _ => end_of(bytes, start, after_blanks(bytes, start), false),
    }
}

/// The end of the line that begins at `start`, read from `at`.
fn end_of(bytes: &[u8], start: usize, at: usize, in_fields: bool) -> LineEnd {
    let mut at = at;
    if !in_fields {
        loop {
            match bytes.get(at) {
                None => return LineEnd::Missing,
                Some(b'\n') => return LineEnd::At(at + 1),
                Some(b' ') => break,
                Some(b'\\') if bytes.get(at + 1).is_some_and(|next| b", =".contains(next)) => at += 2,
                Some(_) => at += 1,
            }
        }
    }
    loop {
        let Some(found) = memchr2(b'\n', b'"', &bytes[at..]) else { return LineEnd::Missing };
        at += found;
        if bytes[at] == b'\n' {
            return LineEnd::At(at + 1);
        }
        if at > start && bytes[at - 1] == b'=' {
            match closing_quote(bytes, start, at) {
                Some((closed, _)) if is_end(bytes, closed + 1) => at = closed,
                Some(_) => return after_break(bytes, at).map_or(LineEnd::Missing, LineEnd::At),
                None => return LineEnd::InText(after_break(bytes, at)),
            }
        }
        at += 1;
    }
}

fn after_break(bytes: &[u8], from: usize) -> Option<usize> {
    memchr(b'\n', &bytes[from..]).map(|at| from + at + 1)
}
