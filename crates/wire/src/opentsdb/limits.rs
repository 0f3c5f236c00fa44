//! The limits of the OpenTSDB codecs.

/// Most tags of a point unless the operator sets another number, as OpenTSDB's `tsd.storage.max_tags`.
pub const TAGS_DEFAULT: usize = 8;
/// Deepest nesting of JSON in a member that the decoder ignores.
pub const IGNORED_DEPTH_MAX: usize = 64;
/// Most tags, and most fields, of a point. A body with a point that has more is refused.
pub const MEMBERS_MAX: usize = 1_024;
/// Bytes of a refused text that a message repeats.
pub const QUOTED_BYTES_MAX: usize = 256;
