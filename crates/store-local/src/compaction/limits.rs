//! The settings of compaction, and the sizes that follow from them.

use model::limits;

use crate::part::Part;

/// The settings by which compaction chooses merges. Defaults are the limits of `model::limits`; tests use tiny ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Number of neighbours of one class that a merge makes a part of the next class.
    pub fan_in: usize,
    /// The largest number of inputs of one merge; never more than the limit of `model::limits`.
    pub inputs_max: usize,
    /// Upper bound of the smallest class in bytes.
    pub class_bytes: u64,
    /// The largest sum of bytes of the inputs of a merge. A part of half of that is full.
    pub part_bytes_max: u64,
    /// The largest sum of rows of the inputs of a merge. A part of half of that is full.
    pub part_rows_max: u64,
    /// Number of rows that the store takes elsewhere until a group counts as quiet.
    pub quiet_rows: u64,
    /// In a quiet group a merge takes a part with newer ones if it has at most this many times their bytes.
    pub quiet_ratio: u64,
    /// Number of overlapping parts of one table from which on flushes wait for merges.
    pub overlap_max: usize,
    /// The largest number of merges of one plan.
    pub merges_max: usize,
    /// The largest sum of input bytes of one plan; the first merge may exceed it.
    pub plan_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fan_in: limits::COMPACTION_FAN_IN,
            inputs_max: limits::COMPACTION_INPUTS_MAX,
            class_bytes: limits::COMPACTION_CLASS_BYTES,
            part_bytes_max: limits::PART_BYTES_MAX,
            part_rows_max: limits::PART_ROWS_MAX,
            quiet_rows: limits::COMPACTION_QUIET_ROWS,
            quiet_ratio: limits::COMPACTION_QUIET_RATIO,
            overlap_max: limits::COMPACTION_OVERLAP_MAX,
            merges_max: limits::COMPACTION_MERGES_MAX,
            plan_bytes: limits::COMPACTION_PLAN_BYTES,
        }
    }
}

impl Limits {
    /// The number of classes below the class of full parts.
    #[cfg(test)]
    pub(super) fn classes(&self) -> usize {
        self.class(self.part_bytes_max / 2) + 1
    }

    /// The class of a part that is not full.
    pub(super) fn class(&self, bytes: u64) -> usize {
        let mut class = 0;
        let mut bound = self.class_bytes;
        while bytes >= bound {
            class += 1;
            bound = bound.saturating_mul(self.fan_in as u64);
        }
        class
    }

    pub(super) fn is_full(&self, part: &Part) -> bool {
        2 * part.info.bytes >= self.part_bytes_max || 2 * part.info.rows >= self.part_rows_max
    }

    /// Whether no merge takes the part: it is full or damaged.
    pub(super) fn stays(&self, part: &Part) -> bool {
        self.is_full(part) || part.is_damaged()
    }

    /// The largest number of parts of a group in which [`choose`](super::choose) finds no merge: the full parts, one part
    /// between two of them, and less than `fan_in` parts of each class at the end.
    #[cfg(test)]
    pub(crate) fn resting_max(&self, full: usize) -> usize {
        2 * full + self.classes() * (self.fan_in - 1)
    }
}
