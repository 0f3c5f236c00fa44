//! Why annotations are not read or written.

use kv::KvError;
use model::Blame;

use crate::caller::Forbidden;

/// Annotations that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum AnnotationError {
    /// The caller lacks the permission.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The key-value store failed.
    #[error(transparent)]
    Kv(#[from] KvError),
    /// The request says something that cannot be.
    #[error("{0}")]
    Invalid(String),
    /// The request goes beyond a limit.
    #[error("{what}: {actual} is more than the limit of {limit}")]
    OverLimit {
        /// The limited quantity.
        what: &'static str,
        /// The value that the request has or needs.
        actual: usize,
        limit: usize,
    },
}

impl AnnotationError {
    /// Refuses what is larger than its limit.
    pub(crate) fn check(what: &'static str, actual: usize, limit: usize) -> Result<(), Self> {
        match actual > limit {
            true => Err(Self::OverLimit { what, actual, limit }),
            false => Ok(()),
        }
    }

    /// Who must act.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Forbidden(_) | Self::Invalid(_) | Self::OverLimit { .. } => Blame::Caller,
            Self::Kv(error) => error.blame(),
        }
    }
}
