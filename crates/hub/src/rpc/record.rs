//! The records of a stored call. `docs/format/rpc.md` describes them.
//!
//! A call has a *head*, which changes with its status and is also in memory, its *content*, which never changes, and the answer
//! of the device. Each is JSON under the id of the call, in a space of its own.

use kv::Space;
use model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::limits::RPC_RETRIES_MAX;
use super::status::RpcStatus;

/// The heads of calls.
pub(super) const HEADS: Space = Space::new("rpc_heads");
/// Their contents.
pub(super) const CONTENTS: Space = Space::new("rpc_contents");
/// The answers of devices, as JSON text.
pub(super) const ANSWERS: Space = Space::new("rpc_answers");

/// What a caller adds to a call that is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storing {
    /// How often the call is sent again if the device does not ack it; [`RPC_RETRIES_MAX`] if it is `None` or larger.
    pub retries: Option<u32>,
    /// JSON text that is kept with the call.
    pub additional_info: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCall {
    /// Identity.
    pub id: Uuid,
    /// Tenant of the device.
    pub tenant: Uuid,
    pub device: Uuid,
    /// When it was stored; whole milliseconds.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    pub status: RpcStatus,
    /// Whether the caller wants no answer of the device.
    pub one_way: bool,
    /// The procedure.
    pub method: String,
    /// Its parameters as JSON text.
    pub params: String,
    /// What the caller added.
    pub storing: Storing,
    /// The answer of the device as JSON text.
    pub answer: Option<String>,
}

/// The part of a stored call that is in memory too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head {
    pub(super) tenant: Uuid,
    pub(super) device: Uuid,
    pub(super) created_ms: i64,
    pub(super) expires_ms: i64,
    pub(super) status: RpcStatus,
    pub(super) one_way: bool,
    /// The number of the request.
    pub(super) number: i32,
    /// How often it may still be sent again.
    pub(super) retries_left: u32,
    /// Bytes of the content and of the answer.
    pub(super) bytes: u64,
}

/// The part of a stored call that never changes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Content {
    pub(super) method: String,
    pub(super) params: Box<RawValue>,
    pub(super) retries: Option<u32>,
    pub(super) additional_info: Option<Box<RawValue>>,
}

impl Head {
    /// Whether the device can still get or answer the call, if its time is not over.
    pub(super) fn is_open(&self) -> bool {
        match self.status {
            RpcStatus::Queued | RpcStatus::Sent | RpcStatus::Timeout => true,
            RpcStatus::Delivered => !self.one_way,
            RpcStatus::Successful | RpcStatus::Expired | RpcStatus::Failed => false,
        }
    }

    /// Whether the device can still get or answer the call.
    pub(super) fn is_open_at(&self, now: Timestamp) -> bool {
        self.is_open() && now.millis() < self.expires_ms
    }

    /// The status at a time. It is stored some time after the call has expired.
    pub(super) fn status_at(&self, now: Timestamp) -> RpcStatus {
        match self.is_open() && !self.is_open_at(now) {
            true => RpcStatus::Expired,
            false => self.status,
        }
    }

    /// The head with another status.
    pub(super) fn with(&self, status: RpcStatus) -> Self {
        Self { status, ..self.clone() }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: ids, numbers and names are always JSON")
    }
}

impl Storing {
    /// How often the call may be sent again.
    pub(super) fn retries_left(&self) -> u32 {
        self.retries.map_or(RPC_RETRIES_MAX, |retries| retries.min(RPC_RETRIES_MAX))
    }
}

impl Content {
    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: text and JSON text are always JSON")
    }
}

/// JSON text as it is; a JSON string if it is not JSON.
pub(super) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned())
        .or_else(|_| serde_json::value::to_raw_value(text))
        .expect("BUG: text is always JSON")
}
