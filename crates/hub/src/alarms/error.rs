//! Refusals and failures of operations on alarms.

use kv::KvError;
use sensors::alarm_rules::RuleError;
use store::Blame;
use uuid::Uuid;

use crate::caller::Forbidden;
use crate::registry::RegistryError;

/// An operation on alarms that was refused, or that failed. A refused change changes nothing.
#[derive(Debug, thiserror::Error)]
pub enum AlarmError {
    /// The caller lacks the permission.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// An entity that the request names is unknown.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// There is no such alarm, or it belongs to someone else.
    #[error("there is no alarm {0}; GET /api/alarms lists the alarms")]
    Unknown(Uuid),
    /// There is no such comment.
    #[error("the alarm {alarm} has no comment {comment}")]
    UnknownComment { alarm: Uuid, comment: Uuid },
    /// The alarm has the wanted state already.
    #[error("Alarm was already {0}!")]
    Already(&'static str),
    /// A part of the request breaks a rule.
    #[error("{0}")]
    Invalid(String),
    /// A limit refuses it.
    #[error("{what}: {actual}, the limit is {limit} ({name})")]
    OverLimit {
        /// The counted quantity.
        what: &'static str,
        /// Its value.
        actual: usize,
        limit: usize,
        /// Name of the limit.
        name: &'static str,
    },
    /// Alarm rules cannot be read.
    #[error(transparent)]
    Rules(#[from] RuleError),
    /// The key-value store failed or is busy.
    #[error(transparent)]
    Kv(#[from] KvError),
}

impl AlarmError {
    /// The party that can resolve the error. No wildcard arm: a new variant must decide.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Registry(error) => error.blame(),
            Self::Kv(error) => error.blame(),
            Self::Forbidden(_)
            | Self::Unknown(_)
            | Self::UnknownComment { .. }
            | Self::Already(_)
            | Self::Invalid(_)
            | Self::OverLimit { .. }
            | Self::Rules(_) => Blame::Caller,
        }
    }
}
