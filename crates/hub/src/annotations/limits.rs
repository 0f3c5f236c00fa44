//! Bounds of annotations.

/// Bytes of the texts of an annotation: description, notes, and the names and values of `custom`.
pub const ANNOTATION_BYTES_MAX: usize = 16 * 1024;
/// Bytes of the text that names a series.
pub const TSUID_BYTES_MAX: usize = 64 * 1024;
/// Annotations of a database.
pub const ANNOTATIONS_PER_DATABASE_MAX: usize = 100_000;
/// Bytes of the annotations of a database on the disk.
pub const ANNOTATIONS_BYTES_PER_DATABASE_MAX: usize = 256 * 1024 * 1024;
/// Annotations of one request that writes.
pub const ANNOTATIONS_PER_REQUEST_MAX: usize = 1_000;
/// Series of one request that deletes.
pub const TSUIDS_PER_REQUEST_MAX: usize = 1_000;
/// Annotations of one answer.
pub const ANNOTATIONS_READ_MAX: usize = 10_000;
/// Bytes of the annotations of one answer.
pub const ANNOTATIONS_READ_BYTES_MAX: usize = 16 * 1024 * 1024;

const _: () = assert!(
    ANNOTATIONS_PER_DATABASE_MAX <= kv::limits::RANGE_KEYS_MAX,
    "a database with its annotations is deleted in one batch"
);
const _: () = assert!(
    ANNOTATIONS_PER_REQUEST_MAX * (ANNOTATION_BYTES_MAX + 1024) <= kv::limits::BATCH_BYTES_MAX,
    "the texts of one request fit into a batch"
);
