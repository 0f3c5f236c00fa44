//! The limits of the OpenTSDB codecs.

use model::limits::{KEY_BYTES_MAX, TABLE_NAME_BYTES_MAX, TAG_VALUE_BYTES_MAX, TAGS_PER_SERIES_MAX};

/// Most tags of a point unless the operator sets another number, as OpenTSDB's `tsd.storage.max_tags`.
pub const TAGS_DEFAULT: usize = 8;
/// Deepest nesting of JSON in a member that the decoder ignores.
pub const IGNORED_DEPTH_MAX: usize = 64;
/// Most tags, and most fields, of a point. A body with a point that has more is refused.
pub const MEMBERS_MAX: usize = 1_024;
/// Bytes of a refused text that a message repeats.
pub const QUOTED_BYTES_MAX: usize = 256;
/// Most bytes of a line of the line protocol, without its end. A point with as many and as long tags as a series can have fits. A longer
/// line is refused.
pub const LINE_BYTES_MAX: usize = 34 * 1024;

const _: () = assert!(
    "put  1700000000000 -1.7976931348623157e308".len()
        + TABLE_NAME_BYTES_MAX
        + TAGS_PER_SERIES_MAX * (KEY_BYTES_MAX + TAG_VALUE_BYTES_MAX + " =".len())
        <= LINE_BYTES_MAX,
    "the largest point is a line"
);
