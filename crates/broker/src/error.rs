//! Refusals and failures of the broker.

use kv::KvError;

use super::retained::BrokerReadError;

/// Why the broker did not do what a session asked for.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The engine did not take the change.
    #[error(transparent)]
    Engine(#[from] KvError),
    /// A record cannot be read.
    #[error(transparent)]
    Read(#[from] BrokerReadError),
    /// A limit refuses it.
    #[error("{what}: {actual}, the limit {limit} is {max}")]
    Limit {
        /// What was asked for.
        what: &'static str,
        /// Name of the limit.
        limit: &'static str,
        /// Its value.
        max: usize,
        /// What it would have been.
        actual: usize,
    },
    /// The session has ended, because another connection has begun a new one.
    #[error("the session has ended")]
    Ended,
}

impl BrokerError {
    /// Whether the same call may succeed later.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Engine(error) | Self::Read(BrokerReadError::Engine(error)) => {
                error.blame() == kv::Blame::Busy
            }
            Self::Read(_) | Self::Limit { .. } | Self::Ended => false,
        }
    }
}
