//! Bounds of the header of the PROXY protocol.

/// Longest header of version 1, with its line end (section 2.1).
pub const V1_BYTES_MAX: usize = 107;
/// Shortest header of version 1: `PROXY UNKNOWN` and the line end.
pub(super) const V1_BYTES_MIN: usize = 15;
/// Bytes of version 2 before the addresses (section 2.2).
pub(super) const V2_PREFIX_BYTES: usize = 16;
/// Longest header of version 2. Addresses take 216 bytes at most; the rest is for the extensions (TLV) of load balancers.
pub const V2_BYTES_MAX: usize = 4 * 1024;
