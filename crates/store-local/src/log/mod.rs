//! The log: segments of frames, one frame for each group commit. Byte tables: docs/format/log.md.
//!
//! Invariants (the code refers to the numbers):
//! 1. The store acknowledges a frame only after this frame and all earlier ones are written and, for class `fsync`, synced.
//! 2. A definition precedes its first use in the log, at the latest in the same frame.
//! 3. The checksum of a frame covers the number of the segment, so a frame of a recycled segment is never valid again.
//! 4. The committer syncs a segment before it writes the first frame of the next one. The name of a segment is durable
//!    before its first frame.
//! 5. The flusher recycles a segment only when a durable manifest edit covers all its frames.
//! 6. After a failed sync the store writes nothing more, because the content of the disk is unknown.
//! 7. The committer writes the note about acknowledged rows after the sync and before it publishes the progress.

pub(crate) mod acknowledged;
pub(crate) mod frame;
pub(crate) mod recover;
pub(crate) mod writer;
