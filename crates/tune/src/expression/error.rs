//! Errors in expressions.

/// An error in an expression, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct ExpressionError {
    /// The column of the error, from 1, in characters.
    pub column: usize,
    pub message: String,
}

/// An error at a byte of the text.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    /// The error with the column that the byte has in the text.
    pub(crate) fn in_text(self, text: &str) -> ExpressionError {
        ExpressionError { column: text[..self.at].chars().count() + 1, message: self.message }
    }
}
