//! The error of a descriptor: where, and what is expected there.

use std::cell::Cell;
use std::fmt;

/// A place in a file. Both count from 1; a column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct TextPosition {
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

impl TextPosition {
    /// The first character of a file.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The place after a character that is here.
    pub(crate) fn after(self, c: char) -> Self {
        match c {
            '\n' => Self { line: self.line + 1, column: 1 },
            _ => Self { column: self.column + 1, ..self },
        }
    }
}

/// Finds the places of bytes. It continues from the last one, so that asking in order is one pass over the text.
pub(crate) struct LineStarts<'a> {
    text: &'a str,
    last: Cell<(usize, TextPosition)>,
}

impl<'a> LineStarts<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, last: Cell::new((0, TextPosition::START)) }
    }

    /// The place of a byte.
    pub(crate) fn of(&self, byte: usize) -> TextPosition {
        let mut end = byte.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let (start, mut place) = match self.last.get() {
            last if last.0 <= end => last,
            _ => (0, TextPosition::START),
        };
        for c in self.text[start..end].chars() {
            place = place.after(c);
        }
        self.last.set((end, place));
        place
    }
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// What kind of fault a descriptor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The text is not XML, TOML or SQL.
    Syntax,
    /// A word or a value that means nothing here.
    Invalid,
    /// A limit, which the reason names.
    Limit,
    /// Part of GSN that this server does not have; the reason names what to use instead.
    Unsupported,
    /// Valid SQL that is not compiled into operators.
    NotCompiled,
}

/// A descriptor that cannot be read or planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize)]
#[error("{place}: {reason}")]
pub struct Fault {
    /// Where the fault is.
    pub place: TextPosition,
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// The fault, and what is expected.
    pub reason: String,
}

impl Fault {
    pub(crate) fn new(place: TextPosition, kind: FaultKind, reason: impl Into<String>) -> Self {
        Self { place, kind, reason: reason.into() }
    }

    pub(crate) fn syntax(place: TextPosition, reason: impl Into<String>) -> Self {
        Self::new(place, FaultKind::Syntax, reason)
    }

    pub(crate) fn invalid(place: TextPosition, reason: impl Into<String>) -> Self {
        Self::new(place, FaultKind::Invalid, reason)
    }

    pub(crate) fn limit(place: TextPosition, reason: impl Into<String>) -> Self {
        Self::new(place, FaultKind::Limit, reason)
    }

    pub(crate) fn unsupported(place: TextPosition, reason: impl Into<String>) -> Self {
        Self::new(place, FaultKind::Unsupported, reason)
    }

    pub(crate) fn not_compiled(place: TextPosition, reason: impl Into<String>) -> Self {
        Self::new(place, FaultKind::NotCompiled, reason)
    }
}

/// All faults of a descriptor, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// The faults; there is at least one.
    pub fn all(&self) -> &[Fault] {
        &self.0
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self(vec![fault])
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// What a check finds.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) notes: Vec<Note>,
    faults: Vec<Fault>,
}

impl Findings {
    /// Begins with what is known already.
    pub(crate) fn new(notes: Vec<Note>) -> Self {
        Self { notes, faults: Vec::new() }
    }

    /// Keeps the fault, so that the check can continue without the value.
    pub(crate) fn keep<T>(&mut self, found: Result<T, Fault>) -> Option<T> {
        match found {
            Ok(value) => Some(value),
            Err(fault) => {
                self.faults.push(fault);
                None
            }
        }
    }

    /// The value with the notes, or the faults. A value that is absent has a fault.
    pub(crate) fn end<T>(mut self, value: Option<T>) -> Result<(T, Vec<Note>), Faults> {
        match value {
            Some(value) if self.faults.is_empty() => Ok((value, self.notes)),
            _ => {
                self.faults.sort_by_key(|fault| fault.place);
                Err(Faults(self.faults))
            }
        }
    }
}

/// Something that a descriptor says and that has no effect here, or another effect than one may expect.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Note {
    /// Where it is said.
    pub place: TextPosition,
    /// What is said, and what happens.
    pub text: String,
}
