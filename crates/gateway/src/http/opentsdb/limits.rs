//! Limits of OpenTSDB's interface.

/// Most bytes of a body, before and after it is unpacked.
pub(super) const PUT_BYTES_MAX: usize = 25_000_000;
/// Bytes of the refused points that an answer with `details` names. Further ones are only counted.
pub(super) const NAMED_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of a body that asks, before and after it is unpacked.
pub(super) const QUERY_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of one piece of a streamed answer.
pub(super) const PIECE_BYTES: usize = 256 * 1024;
/// Names that a suggestion gives unless the caller asks for another number.
pub(super) const SUGGESTED: usize = 25;
/// Series that a lookup gives unless the caller asks for another number.
pub(super) const LOOKED_UP: usize = 25;
/// Most names or series that a list gives.
pub(super) const LISTED_MAX: usize = 100_000;
