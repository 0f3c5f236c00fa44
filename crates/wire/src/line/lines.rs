//! The lines of the body of a request.

use memchr::{memchr, memchr_iter, memrchr};

use super::delimiters::{after_blanks, is_line_end};
use super::error::{BadLine, LineError};
use super::line_end;
use super::parse::parse;
use super::series::Series;
use super::value::Field;

/// The lines of a body, without comments and empty lines. After a bad line it continues with the next one.
///
/// A line with a text that is not closed ends at its first line break, and so does one in which a text is followed by neither a
/// comma nor a blank: its closing quote is probably the opening quote of a later line.
#[derive(Debug)]
pub struct Lines<'a> {
    body: &'a [u8],
    /// Whole lines in UTF-8, and their offset in the body.
    text: &'a str,
    text_at: usize,
    /// Offset in `text`.
    at: usize,
    fields: Vec<Field<'a>>,
}

/// A line other than a comment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RawLine<'l, 'a> {
    /// The line as it was sent, without its line break.
    pub text: &'a str,
    /// Offset of the line in the body.
    pub at: usize,
    /// Measurement and tags.
    pub series: Series<'a>,
    /// Keys and values of the fields, at least one. A key may appear several times.
    pub fields: &'l [Field<'a>],
    /// The time, in the unit that the sender chose.
    pub time: Option<i64>,
}

/// The number of the line at an offset, from 1. It reads the body up to there.
pub fn line_number(body: &[u8], at: usize) -> usize {
    1 + memchr_iter(b'\n', &body[..at.min(body.len())]).count()
}

impl<'a> Lines<'a> {
    /// The lines of a body. Lines that are not UTF-8 are bad lines.
    pub fn new(body: &'a [u8]) -> Self {
        Self::starting_at(body, 0)
    }

    /// The lines of a body from an offset on, where a line begins.
    pub fn starting_at(body: &'a [u8], offset: usize) -> Self {
        let mut lines = Self { body, text: "", text_at: 0, at: 0, fields: Vec::new() };
        lines.load(offset.min(body.len()));
        lines
    }

    /// The offset in the body after the line that was read last.
    pub fn position(&self) -> usize {
        self.text_at + self.at
    }

    /// The lines of a text.
    pub(super) fn of_text(text: &'a str) -> Self {
        Self { body: text.as_bytes(), text, text_at: 0, at: 0, fields: Vec::new() }
    }

    /// The fields of the line that was read last.
    pub(super) fn take_fields(&mut self) -> Vec<Field<'a>> {
        std::mem::take(&mut self.fields)
    }

    /// The text after the line that was read last.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The next line; `None` after the last.
    pub fn next_line(&mut self) -> Option<Result<RawLine<'_, 'a>, BadLine<'a>>> {
        loop {
            let bytes = self.text.as_bytes();
            let start = after_blanks(bytes, self.at);
            match bytes.get(start) {
                None if self.text_at + bytes.len() == self.body.len() => return None,
                None => match self.not_utf8() {
                    Some(bad) => return Some(Err(bad)),
                    None => continue,
                },
                Some(b'\n') => self.at = start + 1,
                Some(b'\r') if is_line_end(bytes, start) => self.at = start + 1,
                Some(b'#') => {
                    self.at = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at + 1)
                }
                Some(_) => return Some(self.line(start)),
            }
        }
    }

    #[inline]
    fn line(&mut self, start: usize) -> Result<RawLine<'_, 'a>, BadLine<'a>> {
        let at = self.text_at + start;
        match parse(self.text, start, &mut self.fields) {
            Ok(parsed) => {
                self.at = parsed.end;
                let series = Series {
                    raw: &self.text[start..parsed.series_end],
                    measurement_end: parsed.measurement_end - start,
                    escaped: parsed.escaped,
                };
                let text = &self.text[start..parsed.end];
                Ok(RawLine { text, at, series, fields: &self.fields, time: parsed.time })
            }
            Err(fault) => {
                let end = line_end::after_fault(self.text.as_bytes(), start, fault.at, fault.place);
                self.at = end;
                let bytes = without_break(&self.text.as_bytes()[start..end]);
                // A text that swallows the next line may have its fault in that one.
                let fault_at = (fault.at - start).min(bytes.len());
                Err(BadLine { bytes, at, error: LineError { at: fault_at, reason: fault.reason } })
            }
        }
    }

    /// Takes the line off that is not UTF-8 and begins where the text ends. `None` for a comment.
    fn not_utf8(&mut self) -> Option<BadLine<'a>> {
        let at = self.text_at + self.text.len();
        let rest = &self.body[at..];
        let line = &rest[..memchr(b'\n', rest).map_or(rest.len(), |end| end + 1)];
        self.load(at + line.len());
        if line.get(after_blanks(line, 0)) == Some(&b'#') {
            return None;
        }
        let valid = std::str::from_utf8(line).map_or_else(|error| error.valid_up_to(), str::len);
        Some(BadLine { bytes: without_break(line), at, error: LineError { at: valid, reason: "not UTF-8" } })
    }

    /// Reads UTF-8 from an offset of the body, up to the end or the beginning of a line that is not UTF-8.
    fn load(&mut self, from: usize) {
        let rest = &self.body[from..];
        (self.text_at, self.at) = (from, 0);
        self.text = std::str::from_utf8(rest).unwrap_or_else(|error| {
            let valid = &rest[..error.valid_up_to()];
            let whole = memrchr(b'\n', valid).map_or(0, |at| at + 1);
            // A part of valid text that ends after a line break is valid.
            std::str::from_utf8(&valid[..whole]).unwrap_or_default()
        });
    }
}

fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
