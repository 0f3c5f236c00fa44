//! Limits of OpenTSDB's interface.

/// Most bytes of a body, before and after it is unpacked.
pub(super) const PUT_BYTES_MAX: usize = 25_000_000;
/// Bytes of the refused points that an answer with `details` names. Further ones are only counted.
pub(super) const NAMED_BYTES_MAX: usize = 1024 * 1024;
