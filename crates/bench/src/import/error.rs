//! Import errors.

use super::Format;

/// The reason why an output cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No known tool wrote it.
    #[error(
        "this is not an output of sysbench, memtier (JSON), wrk, wrk2 or fio (JSON); name its format if it is one of them"
    )]
    Unknown,
    /// A line is wrong.
    #[error("line {line} of {format}'s output: {what}")]
    Wrong {
        /// The format that was assumed.
        format: Format,
        /// The line, from 1.
        line: usize,
        what: String,
    },
    /// A member of a JSON file is wrong.
    #[error("{format}'s output, {path}: {what}")]
    Field {
        /// The format that was assumed.
        format: Format,
        /// The member.
        path: String,
        what: String,
    },
    /// A part is missing.
    #[error("not a whole result of {format}: {what}")]
    Incomplete {
        /// The format that was assumed.
        format: Format,
        what: String,
    },
}

impl ImportError {
    pub(super) fn incomplete(format: Format, what: impl Into<String>) -> Self {
        Self::Incomplete { format, what: what.into() }
    }

    /// The file is not JSON, or has several documents.
    pub(super) fn json(format: Format, error: &serde_json::Error) -> Self {
        Self::json_after(format, error, 0)
    }

    /// An error in JSON after `lines` lines of other text. The error counts lines from the start of the file.
    pub(super) fn json_after(format: Format, error: &serde_json::Error, lines: usize) -> Self {
        let text = error.to_string();
        if error.is_eof() {
            return Self::incomplete(format, format!("the file ends too early: {text}"));
        }
        let what = match text.starts_with("trailing characters") {
            true => "here begins a second run; import each run from a file of its own".to_owned(),
            false => text,
        };
        Self::Wrong { format, line: error.line() + lines, what }
    }
}
