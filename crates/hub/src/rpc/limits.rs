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
/// Parts of the map of pending calls, each with a lock of its own.
pub(super) const RPC_SHARDS: usize = 64;
