//! The log: segments of frames, one frame for each group commit. Byte tables: docs/format/log.md.
//!
//! Invariants (the numbers are referred to from the code):
//! 1. A frame is acknowledged only after it and all frames before it are written and, for class `fsync`, synced.
//! 2. A definition stands in the log before its first use, at the latest in the same frame.
//! 3. A frame's checksum covers the segment's number, so a frame of a recycled segment never validates again.
//! 4. A segment is synced before the first frame of the next one is written; its name is durable before that too.
//! 5. A segment is recycled only when a durable manifest edit covers all its frames.
//! 6. After a failed sync nothing is written any more: what the disk holds is unknown.
//! 7. The note of what was acknowledged is written after the sync that it tells of, and before anybody is told.

pub(crate) mod acknowledged;
pub(crate) mod frame;
pub(crate) mod recover;
pub(crate) mod writer;
