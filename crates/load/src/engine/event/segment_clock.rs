//! The time within a segment.

/// The position of a worker in the time of a segment.
pub(super) struct SegmentClock {
    pub(super) until_ns: u64,
    pub(super) second: u64,
    pub(super) tick_ns: u64,
    pub(super) next_tick_ns: u64,
    /// Whether any group has operations on a schedule.
    pub(super) scheduled: bool,
}
