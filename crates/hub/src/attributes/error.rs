//! Errors of attributes.

use kv::KvError;
use model::NameError;
use store::Blame;

use super::scope::Scope;
use crate::caller::Forbidden;
use crate::registry::RegistryError;

/// A read or a write of attributes that was refused, or that failed. A refused write changes nothing.
#[derive(Debug, thiserror::Error)]
pub enum AttributeError {
    /// The caller lacks the permission.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The entity is unknown; it may have been deleted at this moment.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A key breaks the rules for names.
    #[error("attributes of the {entity} in {scope}: {error}")]
    Key {
        /// The entity in words, such as `device "truck 7"`.
        entity: String,
        scope: Scope,
        /// The broken rule.
        error: NameError,
    },
    /// A key consists of blanks.
    #[error("attributes of the {entity} in {scope}: a key consists of blanks; give it a name")]
    BlankKey {
        /// The entity in words, such as `device "truck 7"`.
        entity: String,
        scope: Scope,
    },
    /// A limit is exceeded.
    #[error("attributes of the {entity} in {scope}: {what} is {actual}, the limit is {limit} ({name})")]
    OverLimit {
        /// The entity in words, such as `device "truck 7"`.
        entity: String,
        scope: Scope,
        /// The counted quantity.
        what: &'static str,
        /// Its value.
        actual: usize,
        limit: usize,
        /// Name of the limit.
        name: &'static str,
    },
    /// Users do not write client attributes.
    #[error("only the device {device:?} writes its attributes in {scope}", scope = Scope::Client)]
    OnlyDevice {
        /// Name of the device.
        device: String,
    },
    /// An entity of this kind has no attributes in this scope.
    #[error("the {entity} has no attributes in {scope}; entities other than devices have those in {server} only", server = Scope::Server)]
    NoScope {
        /// The entity in words.
        entity: String,
        scope: Scope,
    },
    /// The server writes the attribute itself.
    #[error("the server itself keeps the attribute {key:?} of the {entity}; leave it out")]
    Kept {
        /// The entity in words.
        entity: String,
        key: String,
    },
    /// A stored attribute cannot be read.
    #[error(
        "a stored attribute of the {entity} in {scope} is damaged; restore it from a backup, or delete it"
    )]
    Damaged {
        /// The entity in words.
        entity: String,
        scope: Scope,
    },
    /// The key-value store refused or failed.
    #[error(transparent)]
    Kv(#[from] KvError),
}

impl AttributeError {
    /// The party that can resolve the error. No wildcard arm: a new variant must decide.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Registry(error) => error.blame(),
            Self::Kv(error) => error.blame(),
            Self::Forbidden(_)
            | Self::Key { .. }
            | Self::BlankKey { .. }
            | Self::OverLimit { .. }
            | Self::OnlyDevice { .. }
            | Self::NoScope { .. }
            | Self::Kept { .. } => Blame::Caller,
            Self::Damaged { .. } => Blame::Operator,
        }
    }

    /// A short, stable name for metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Forbidden(_) | Self::OnlyDevice { .. } | Self::Kept { .. } => "permission",
            Self::Registry(_) => "not_found",
            Self::Key { .. } | Self::BlankKey { .. } => "key",
            Self::NoScope { .. } => "scope",
            Self::OverLimit { .. } => "attribute_limit",
            Self::Damaged { .. } | Self::Kv(_) => "store_of_keys",
        }
    }
}
