//! Bounds of RPC.

use std::time::Duration;

/// Longest name of a procedure in bytes.
pub const RPC_METHOD_BYTES_MAX: usize = 255;
/// Longest parameters of a call, as JSON text in bytes.
pub const RPC_PARAMS_BYTES_MAX: usize = 1024 * 1024;
/// How long a call waits for its device if it names no time (ThingsBoard's `server_side_rpc.default_timeout`).
pub const RPC_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// A shorter timeout counts as this one (ThingsBoard's `server_side_rpc.min_timeout`). An expiration time may be nearer.
pub const RPC_TIMEOUT_MIN: Duration = Duration::from_secs(5);
/// Longest time that a caller waits for a device.
pub const RPC_WAIT_MAX: Duration = Duration::from_secs(60 * 60);
/// Pending calls of one device.
pub const RPC_PENDING_PER_DEVICE_MAX: usize = 100;
/// Pending calls of all devices.
pub const RPC_PENDING_MAX: usize = 16_384;
/// Bytes of the parameters of all pending calls.
pub const RPC_PENDING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Stored calls of one device. A new one takes the place of the oldest that has ended.
pub const RPC_STORED_PER_DEVICE_MAX: usize = 100;
/// Stored calls of one tenant. A new one takes the place of the oldest that has ended.
pub const RPC_STORED_PER_TENANT_MAX: usize = 10_000;
/// Bytes of the stored calls of one tenant on the disk.
pub const RPC_STORED_BYTES_PER_TENANT_MAX: u64 = 256 * 1024 * 1024;
/// Longest additional information of a stored call in bytes.
pub const RPC_INFO_BYTES_MAX: usize = 64 * 1024;
/// How often a stored call is sent again at most (ThingsBoard's `actors.rpc.max_retries`).
pub const RPC_RETRIES_MAX: u32 = 5;
/// How long a stored call is kept after its time was over.
pub const RPC_KEPT: Duration = Duration::from_secs(7 * 86_400);
/// Calls that one cleaning ends, and that it deletes.
pub(super) const RPC_CLEANED_MAX: usize = 10_000;
/// How long the change of a stored call waits for a busy store.
pub(crate) const RPC_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Parts of the map of pending calls, each with a lock of its own.
pub(super) const RPC_SHARDS: usize = 64;
