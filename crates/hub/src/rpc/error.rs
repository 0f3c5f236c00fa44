//! Errors of calls.

use kv::KvError;
use uuid::Uuid;

use crate::caller::Forbidden;
use crate::registry::RegistryError;

/// A call that has no answer.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// The caller lacks the permission.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The device is unknown.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The key-value store failed.
    #[error(transparent)]
    Kv(#[from] KvError),
    /// There is no such stored call.
    #[error("there is no stored call {0}; GET /api/rpc/persistent/device/<device> lists those of a device")]
    Unknown(Uuid),
    /// The call names no procedure.
    #[error("the call names no procedure; set \"method\"")]
    NoMethod,
    /// The call does not fit the Protobuf schema of the device's profile.
    #[error("{0}")]
    Unfit(String),
    /// A part of the call is too long.
    #[error("the {what} of the call have {actual} bytes, the limit is {limit}; send less")]
    TooLong {
        /// The part.
        what: &'static str,
        actual: usize,
        limit: usize,
    },
    /// The caller would wait for too long.
    #[error(
        "the call would wait for {seconds} s, the limit is {limit} s; shorten the timeout, or make the call persistent"
    )]
    TooFar {
        /// The wait in seconds.
        seconds: i64,
        /// The limit in seconds.
        limit: u64,
    },
    /// Too many calls are pending.
    #[error("{actual} {what}, the limit is {limit}; try again when some have ended")]
    Busy {
        /// The counted quantity.
        what: &'static str,
        /// How many.
        actual: usize,
        limit: usize,
    },
    /// The connections of the device have no room for the call.
    #[error("the device {device} does not take its messages and has no room for the call; try again later")]
    OutboxFull { device: Uuid },
    /// No connection of the device subscribed to RPC requests before the call ended.
    #[error("no connection of the device {device} subscribed to RPC requests before the call ended")]
    NoConnection { device: Uuid },
    /// A connection got the call, but the device did not take or answer it before the call ended.
    #[error("the device {device} did not answer before the call ended")]
    Timeout { device: Uuid },
}
