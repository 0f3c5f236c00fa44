//! Parses one line in one pass.

use std::borrow::Cow;

use memchr::memchr2;

use super::delimiters::{after_blanks, is_end, is_line_end};
use super::limits::LINE_BYTES_MAX;
use super::series::{KEY_SPECIAL, NAME_SPECIAL, unescaped};
use super::value::{self, Field, LineValue};

/// Offsets in the text of a line that is understood.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) measurement_end: usize,
    /// Whether measurement or tags have escapes.
    pub(super) escaped: bool,
    pub(super) series_end: usize,
    pub(super) time: Option<i64>,
    /// The end without the line break.
    pub(super) end: usize,
}

/// A fault in a line.
#[derive(Debug)]
pub(super) struct Fault {
    /// Its offset in the text.
    pub(super) at: usize,
    pub(super) reason: &'static str,
    pub(super) place: FaultyPart,
}

/// The part of a line with a fault: what comes after it is read accordingly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultyPart {
    /// Measurement and tags.
    Series,
    /// Fields and time, outside of texts.
    Fields,
    /// A text which is not closed, or whose closing quote is probably the opening quote of a later text. With the offset of its
    /// opening quote.
    Text(usize),
}

/// Parses the line at `start`, which is neither empty nor a comment. Replaces the fields.
pub(super) fn parse<'a>(text: &'a str, start: usize, fields: &mut Vec<Field<'a>>) -> Result<Parsed, Fault> {
    fields.clear();
    let bytes = text.as_bytes();
    let (measurement_end, mut escaped) = measurement(bytes, start)?;
    let mut at = measurement_end;
    while bytes.get(at) == Some(&b',') {
        at = tag(bytes, at + 1, &mut escaped)?;
    }
    let series_end = at;
    if bytes.get(at) != Some(&b' ') {
        return Err(series(at, "missing fields"));
    }
    at = after_blanks(bytes, at);
    if is_line_end(bytes, at) {
        return Err(Fault { at, reason: "missing fields", place: FaultyPart::Fields });
    }
    loop {
        at = field(text, start, at, fields)?;
        if bytes.get(at) != Some(&b',') {
            break;
        }
        at += 1;
    }
    at = after_blanks(bytes, at);
    let mut time = None;
    if !is_line_end(bytes, at) {
        let fault = |at, reason| Fault { at, reason, place: FaultyPart::Fields };
        let (value, end) = value::time(text, at).map_err(|reason| fault(at, reason))?;
        time = Some(value);
        at = after_blanks(bytes, end);
        if !is_line_end(bytes, at) {
            return Err(fault(at, "point is invalid"));
        }
    }
    Ok(Parsed { measurement_end, escaped, series_end, time, end: at })
}

/// The end of the measurement, and whether it has escapes.
#[inline]
fn measurement(bytes: &[u8], start: usize) -> Result<(usize, bool), Fault> {
    let (mut at, mut escaped) = name_end(bytes, start, NAME_SPECIAL);
    while bytes.get(at) == Some(&b'=') {
        let (end, more) = name_end(bytes, at + 1, NAME_SPECIAL);
        (at, escaped) = (end, escaped | more);
    }
    if at == start { Err(series(at, "missing measurement")) } else { Ok((at, escaped)) }
}

/// The end of the tag at `start`.
#[inline]
fn tag(bytes: &[u8], start: usize, escaped: &mut bool) -> Result<usize, Fault> {
    let (key_end, key_escaped) = name_end(bytes, start, NAME_SPECIAL);
    if key_end == start {
        return Err(series(start, "missing tag key"));
    }
    if bytes.get(key_end) != Some(&b'=') {
        return Err(series(key_end, "missing tag value"));
    }
    let (end, value_escaped) = name_end(bytes, key_end + 1, NAME_SPECIAL);
    *escaped |= key_escaped | value_escaped;
    match bytes.get(end) {
        Some(b'=') => Err(series(end, "invalid tag format")),
        _ if end == key_end + 1 => Err(series(end, "missing tag value")),
        _ => Ok(end),
    }
}

/// Adds the field at `start`. Returns its end.
#[inline]
fn field<'a>(
    text: &'a str,
    line_start: usize,
    start: usize,
    fields: &mut Vec<Field<'a>>,
) -> Result<usize, Fault> {
    let bytes = text.as_bytes();
    let fault = |at, reason| Fault { at, reason, place: FaultyPart::Fields };
    let (key_end, escaped) = name_end(bytes, start, KEY_SPECIAL);
    if bytes.get(key_end) != Some(&b'=') {
        return Err(fault(key_end, "invalid field format"));
    }
    if key_end == start {
        return Err(fault(start, "missing field key"));
    }
    let at = key_end + 1;
    if is_end(bytes, at) {
        return Err(fault(at, "missing field value"));
    }
    let key = &text[start..key_end];
    let key = if escaped { Cow::Owned(unescaped(key, KEY_SPECIAL)) } else { Cow::Borrowed(key) };
    let (value, end) = if bytes[at] == b'"' {
        quoted(text, line_start, at)?
    } else {
        value::scalar(text, at).map_err(|reason| fault(at, reason))?
    };
    fields.push((key, value));
    Ok(end)
}

/// The text whose opening quote is at `opened`, and the offset after its closing quote.
fn quoted(text: &str, line_start: usize, opened: usize) -> Result<(LineValue<'_>, usize), Fault> {
    let bytes = text.as_bytes();
    let fault = |at, reason| Fault { at, reason, place: FaultyPart::Text(opened) };
    let (closed, escaped) =
        closing_quote(bytes, line_start, opened).ok_or(fault(opened, "unbalanced quotes"))?;
    if !is_end(bytes, closed + 1) {
        return Err(fault(closed + 1, "invalid field format"));
    }
    let inner = &text[opened + 1..closed];
    let inner = if escaped { Cow::Owned(unescaped(inner, b"\"\\")) } else { Cow::Borrowed(inner) };
    Ok((LineValue::Text(inner), closed + 1))
}

/// The offset of the quote that closes a text, and whether the text has escapes.
pub(super) fn closing_quote(bytes: &[u8], line_start: usize, opened: usize) -> Option<(usize, bool)> {
    let bytes = &bytes[..bytes.len().min(line_start.saturating_add(LINE_BYTES_MAX))];
    let (mut at, mut escaped) = (opened + 1, false);
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some((at, escaped));
        }
        // A backslash before any other character is literal: to step over both is the same.
        escaped = true;
        at += 2;
    }
}

/// The offset of the first unescaped comma, `=`, blank or line break, and whether there are escapes before it.
#[inline]
fn name_end(bytes: &[u8], start: usize, special: &[u8]) -> (usize, bool) {
    let (mut at, mut escaped) = (start, false);
    while let Some(byte) = bytes.get(at) {
        if !ENDS[usize::from(*byte)] {
            at += 1;
        } else if *byte == b'\\' {
            let is_escape = bytes.get(at + 1).is_some_and(|next| special.contains(next));
            escaped |= is_escape;
            at += 1 + usize::from(is_escape);
        } else {
            break;
        }
    }
    (at, escaped)
}

/// Bytes at which the scan of a name stops.
const ENDS: [bool; 256] = {
    let mut ends = [false; 256];
    let stops = b",= \\\n";
    let mut index = 0;
    while index < stops.len() {
        ends[stops[index] as usize] = true;
        index += 1;
    }
    ends
};

fn series(at: usize, reason: &'static str) -> Fault {
    Fault { at, reason, place: FaultyPart::Series }
}
