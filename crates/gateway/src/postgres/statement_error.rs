//! Errors of statements that the door answers itself.

/// A statement of the door with wrong syntax.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum StatementError {
    #[error("syntax error: {0}")]
    Syntax(String),
    #[error("{0}")]
    Unsupported(String),
}

/// An error of syntax.
pub(super) fn syntax(message: &str) -> StatementError {
    StatementError::Syntax(message.into())
}
