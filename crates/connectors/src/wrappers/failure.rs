//! Why a source cannot be read.

use std::fmt::Display;

/// Why a source cannot be read, in words for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// What was done when an error came.
    pub(crate) fn while_(doing: impl Display, error: impl Display) -> Self {
        Self(format!("{doing}: {error}"))
    }
}
