//! Why a device cannot be claimed.

use kv::KvError;
use model::Blame;

use crate::attributes::AttributeError;
use crate::caller::Forbidden;
use crate::logins::LoginRefused;
use crate::registry::RegistryError;

/// An offer or a claim that is refused, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The caller lacks the permission.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The caller is not a user of a customer.
    #[error("{login} is not a user of a customer; only they claim devices, an administrator assigns them")]
    NoCustomer {
        /// Login of the caller.
        login: String,
    },
    /// The device is unknown, or has changed at this moment.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The address has sent too many wrong secrets.
    #[error(transparent)]
    TooManyGuesses(#[from] LoginRefused),
    /// The device is assigned to a customer.
    #[error("the device {device:?} is assigned to a customer already; end the assignment first")]
    Assigned {
        /// Name of the device.
        device: String,
    },
    /// The server attribute `claimingAllowed` of the device is false.
    #[error(
        "the server attribute claimingAllowed of the device {device:?} is not true; set it to true or delete it"
    )]
    NotAllowed {
        /// Name of the device.
        device: String,
    },
    /// The request goes beyond a limit.
    #[error("the {what} is {actual}, the limit is {limit} ({name})")]
    OverLimit {
        /// The limited quantity.
        what: &'static str,
        /// The value that the request has.
        actual: u64,
        limit: u64,
        /// Name of the limit.
        name: &'static str,
    },
    /// Attributes cannot be read or written.
    #[error(transparent)]
    Attributes(#[from] AttributeError),
    /// The key-value store refused or failed.
    #[error(transparent)]
    Kv(#[from] KvError),
}

impl ClaimError {
    /// Who must act.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Forbidden(_)
            | Self::NoCustomer { .. }
            | Self::TooManyGuesses(_)
            | Self::Assigned { .. }
            | Self::NotAllowed { .. }
            | Self::OverLimit { .. } => Blame::Caller,
            Self::Registry(error) => error.blame(),
            Self::Attributes(error) => error.blame(),
            Self::Kv(error) => error.blame(),
        }
    }
}
