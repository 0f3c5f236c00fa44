//! Why packages are not read, changed or given to devices.

use kv::KvError;
use model::Blame;

use crate::attributes::AttributeError;
use crate::caller::Forbidden;
use crate::registry::RegistryError;

/// An operation on packages that is refused, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum OtaError {
    /// The caller lacks the permission.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// Something is unknown, or still used.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The request says something that cannot be.
    #[error("{0}")]
    Invalid(String),
    /// The device has no package of the kind, or not the one that it asks for.
    #[error("{0}")]
    NotFound(String),
    /// The request goes beyond a limit.
    #[error("the {what} is {actual}, the limit is {limit} ({name})")]
    OverLimit {
        /// The limited quantity.
        what: &'static str,
        /// The value that the request has or needs.
        actual: u64,
        limit: u64,
        /// Name of the limit.
        name: &'static str,
    },
    /// A stored package cannot be read.
    #[error("the stored package {0} is damaged; restore it from a backup, or delete it")]
    Damaged(uuid::Uuid),
    /// Attributes cannot be written.
    #[error(transparent)]
    Attributes(#[from] AttributeError),
    /// The key-value store refused or failed.
    #[error(transparent)]
    Kv(#[from] KvError),
}

impl OtaError {
    /// Who must act.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Forbidden(_) | Self::Invalid(_) | Self::NotFound(_) | Self::OverLimit { .. } => {
                Blame::Caller
            }
            Self::Registry(error) => error.blame(),
            Self::Attributes(error) => error.blame(),
            Self::Kv(error) => error.blame(),
            Self::Damaged(_) => Blame::Operator,
        }
    }
}
