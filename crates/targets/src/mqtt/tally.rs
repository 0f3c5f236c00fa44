//! The sent messages of a device.

/// The counts of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages handed to the kernel, or parts of a gateway's messages; their sequence numbers are 0..sent.
    pub sent: u64,
    /// Those that were acknowledged with success.
    pub acked: u64,
    /// Timestamp of the newest message, milliseconds.
    pub last_ts_ms: u64,
}
