//! Windows and slides.

use std::fmt;

use crate::virtual_sensors::descriptor::{Located, Source};
use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::limits::{HISTORY_ROWS_MAX, WINDOW_ELEMENTS_MAX, WINDOW_MILLIS_MAX};

/// A count of elements, or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Elements.
    Count(usize),
    /// Milliseconds.
    Millis(i64),
}

/// When a window moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slide {
    /// On each element.
    Each,
    /// After this many elements.
    Count(usize),
    /// After this many milliseconds.
    Millis(i64),
}

/// The window of a source: one of six kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// What it holds.
    pub size: Extent,
    /// When it moves.
    pub slide: Slide,
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(1) => f.write_str("1 element"),
            Self::Count(count) => write!(f, "{count} elements"),
            Self::Millis(millis) => write!(f, "{}", Millis(*millis)),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slide {
            Slide::Each => write!(f, "{}, on each element", self.size),
            Slide::Count(count) => write!(f, "{}, every {}", self.size, Extent::Count(count)),
            Slide::Millis(millis) => write!(f, "{}, every {}", self.size, Millis(millis)),
        }
    }
}

/// A time in the largest unit that has no rest.
struct Millis(i64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(3_600_000, "h"), (60_000, "m"), (1000, "s")] {
            if self.0 != 0 && self.0 % unit == 0 {
                return write!(f, "{} {name}", self.0 / unit);
            }
        }
        write!(f, "{} ms", self.0)
    }
}

/// The window of a source.
pub(super) fn window(source: &Source, notes: &mut Vec<Note>) -> Result<Window, Fault> {
    let present = |said: &&Located<String>| !said.value.trim().is_empty();
    let size = match source.storage_size.as_ref().filter(present) {
        Some(said) => extent(said, "storage-size")?,
        None => {
            let text = format!("source {} has no storage-size; its window is 1 element", source.alias.value);
            notes.push(Note { place: source.alias.place, text });
            Extent::Count(1)
        }
    };
    if matches!(size, Extent::Count(0) | Extent::Millis(0)) {
        let text = format!("the window of source {} is empty, so it has no rows", source.alias.value);
        notes.push(Note { place: source.alias.place, text });
    }
    let Some(said) = source.slide.as_ref().filter(present) else {
        return Ok(Window { size, slide: Slide::Each });
    };
    let slide = match extent(said, "slide")? {
        Extent::Count(0) | Extent::Millis(0) => {
            return Err(Fault::invalid(said.place, "slide is 0; a window moves on 1 element or 1s at least"));
        }
        Extent::Count(1) => Slide::Each,
        Extent::Count(count) => Slide::Count(count),
        Extent::Millis(millis) => Slide::Millis(millis),
    };
    Ok(Window { size, slide })
}

/// `history-size`: a count of rows, or a time, which has no limit.
pub(super) fn history(said: &Located<String>) -> Result<Extent, Fault> {
    match parse(&said.value).ok_or_else(|| bad(said, "history-size"))? {
        (count, None) => match usize::try_from(count) {
            Ok(count) if count <= HISTORY_ROWS_MAX => Ok(Extent::Count(count)),
            _ => {
                let reason = format!(
                    "history-size is {count} rows; at most {HISTORY_ROWS_MAX} (HISTORY_ROWS_MAX), or a time such as 720h"
                );
                Err(Fault::limit(said.place, reason))
            }
        },
        (count, Some(unit)) => {
            count.checked_mul(unit).map(Extent::Millis).ok_or_else(|| bad(said, "history-size"))
        }
    }
}

/// `lateness`: a time.
pub(super) fn lateness(said: &Located<String>) -> Result<i64, Fault> {
    let Some((count, Some(unit))) = parse(&said.value) else {
        let reason = format!("lateness is {:?}; it is a time with its unit (30s, 10m, 2h)", said.value);
        return Err(Fault::invalid(said.place, reason));
    };
    match count.checked_mul(unit) {
        Some(millis) if millis <= WINDOW_MILLIS_MAX => Ok(millis),
        _ => {
            let most = Millis(WINDOW_MILLIS_MAX);
            let reason = format!("lateness is {:?}; at most {most} (WINDOW_MILLIS_MAX)", said.value);
            Err(Fault::limit(said.place, reason))
        }
    }
}

fn extent(said: &Located<String>, what: &str) -> Result<Extent, Fault> {
    let over = |reason| Err(Fault::limit(said.place, reason));
    match parse(&said.value).ok_or_else(|| bad(said, what))? {
        (count, None) => match usize::try_from(count) {
            Ok(count) if count <= WINDOW_ELEMENTS_MAX => Ok(Extent::Count(count)),
            _ => over(format!(
                "{what} is {count} elements; at most {WINDOW_ELEMENTS_MAX} (WINDOW_ELEMENTS_MAX)"
            )),
        },
        (count, Some(unit)) => match count.checked_mul(unit) {
            Some(millis) if millis <= WINDOW_MILLIS_MAX => Ok(Extent::Millis(millis)),
            _ => over(format!(
                "{what} is {:?}; at most {} (WINDOW_MILLIS_MAX)",
                said.value,
                Millis(WINDOW_MILLIS_MAX)
            )),
        },
    }
}

/// A whole number, and the milliseconds of its unit. Blanks do not count.
fn parse(text: &str) -> Option<(i64, Option<i64>)> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
    let unit = match text.chars().last()? {
        's' => Some(1000),
        'm' => Some(60_000),
        'h' => Some(3_600_000),
        _ => None,
    };
    let digits = if unit.is_some() { &text[..text.len() - 1] } else { &text };
    Some((digits.parse().ok().filter(|count| *count >= 0)?, unit))
}

fn bad(said: &Located<String>, what: &str) -> Fault {
    let reason = format!(
        "{what} is {:?}; it is a count of elements (10) or a time with its unit (30s, 10m, 2h)",
        said.value
    );
    Fault::invalid(said.place, reason)
}
