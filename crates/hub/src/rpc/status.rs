//! The status of a stored call, as in ThingsBoard (`RpcStatus`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The status of a stored call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RpcStatus {
    /// No connection has taken it.
    Queued,
    /// A connection has sent it and waits for the ack.
    Sent,
    /// The device has it. A one-way call has ended.
    Delivered,
    /// The device has answered.
    Successful,
    /// The device did not ack it; it is sent again.
    Timeout,
    /// Its time was over before it ended.
    Expired,
    /// The device did not ack it, and it is not sent again.
    Failed,
}

impl RpcStatus {
    /// All of them. ThingsBoard's `DELETED` is the name of an event; no call has this status.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Sent,
        Self::Delivered,
        Self::Successful,
        Self::Timeout,
        Self::Expired,
        Self::Failed,
    ];

    /// ThingsBoard's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "QUEUED",
            Self::Sent => "SENT",
            Self::Delivered => "DELIVERED",
            Self::Successful => "SUCCESSFUL",
            Self::Timeout => "TIMEOUT",
            Self::Expired => "EXPIRED",
            Self::Failed => "FAILED",
        }
    }
}

impl fmt::Display for RpcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RpcStatus {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|status| status.name() == name).ok_or_else(|| {
            format!("unknown status {name:?}; use one of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}
