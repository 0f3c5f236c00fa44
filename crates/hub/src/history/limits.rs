//! Bounds of histories. The values of one answer are bounded by [`model::limits::READ_ROWS_MAX`].

/// Calendar intervals of one request: two hundred years of weeks. Their ends are in memory.
pub const CALENDAR_INTERVALS_MAX: u64 = 10_500;
