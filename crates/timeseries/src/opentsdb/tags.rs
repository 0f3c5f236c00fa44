//! The tags of a series.

/// Names and values of tags, sorted by name.
pub type Tags = Vec<(String, String)>;
