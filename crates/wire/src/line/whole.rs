//! Lines of texts that are read piece by piece.

use std::borrow::Cow;

use super::error::LineError;
use super::limits::LINE_BYTES_MAX;
use super::line_end::{self, LineEnd};
use super::lines::Lines;
use super::series::Tag;
use super::value::Field;

/// A line other than a comment.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    /// The measurement.
    pub measurement: Cow<'a, str>,
    /// Keys and values of the tags, in the order of the line.
    pub tags: Vec<Tag<'a>>,
    /// Keys and values of the fields, at least one.
    pub fields: Vec<Field<'a>>,
    /// The time, in the unit that the sender chose.
    pub time: Option<i64>,
}

/// Length of the whole lines at the beginning of `text`, including line breaks.
pub fn whole_lines(text: &str) -> usize {
    let (bytes, mut end) = (text.as_bytes(), 0);
    while end < bytes.len() {
        end = match line_end::of_line(bytes, end) {
            LineEnd::At(at) => at,
            LineEnd::InText(Some(at)) if bytes.len() - end >= LINE_BYTES_MAX => at,
            LineEnd::InText(_) | LineEnd::Missing => break,
        };
    }
    end
}

/// The lines of a text, without comments and empty lines.
pub fn lines(text: &str) -> impl Iterator<Item = Result<Line<'_>, LineError>> {
    let mut rest = text;
    std::iter::from_fn(move || next_line(&mut rest))
}

/// Takes the next line off a text, skipping comments and empty lines.
pub fn next_line<'a>(rest: &mut &'a str) -> Option<Result<Line<'a>, LineError>> {
    let mut lines = Lines::of_text(rest);
    let next = lines.next_line().map(|line| match line {
        Ok(line) => Ok((line.series, line.time)),
        Err(bad) => Err(bad.error),
    });
    *rest = lines.rest();
    Some(next?.map(|(series, time)| Line {
        measurement: series.measurement(),
        tags: series.tags().collect(),
        fields: lines.take_fields(),
        time,
    }))
}
