//! Limits of OpenTSDB's interface.

/// Most bytes of a body, before and after it is unpacked.
pub(super) const PUT_BYTES_MAX: usize = 25_000_000;
/// Bodies above this many bytes are read on a blocking thread: the event loop waits at most some tenths of a millisecond.
pub(super) const INLINE_BYTES_MAX: usize = 256 * 1024;
/// Times that a body is read anew because a series of it was deleted meanwhile.
pub(super) const SERIES_GONE_MAX: usize = 3;
/// Bytes of the refused points that an answer with `details` names. Further ones are only counted.
pub(super) const NAMED_BYTES_MAX: usize = 1024 * 1024;
