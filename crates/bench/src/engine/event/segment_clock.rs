//! The time within a segment.

/// Where a segment is in time.
pub(super) struct SegmentClock {
    pub(super) until_ns: u64,
    pub(super) second: u64,
    pub(super) tick_ns: u64,
    pub(super) next_tick_ns: u64,
    /// Groups whose operations come on a schedule.
    pub(super) scheduled: bool,
}
