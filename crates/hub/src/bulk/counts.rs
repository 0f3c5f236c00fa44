//! The bounds of an import, and the counts of its rows.

use model::limits::IngestLimits;
use model::{TimeRange, Timestamp};

/// The bounds on rows of an import: those of the doors for devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportRules {
    /// Rows with other times are left out: such times mostly have a wrong unit.
    pub plausible: TimeRange,
    /// Longer texts are left out.
    pub text_value_bytes_max: usize,
}

impl ImportRules {
    /// The present bounds of devices. With `any_time` every time that can be represented is allowed.
    pub fn of(limits: &IngestLimits, now: Timestamp, any_time: bool) -> Self {
        let plausible = if any_time { TimeRange::ALL } else { limits.plausible(now) };
        Self { plausible, text_value_bytes_max: limits.text_value_bytes_max }
    }
}

/// Counts of imported and left-out rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Rows that are durable.
    pub rows: u64,
    /// Values of these rows.
    pub values: u64,
    /// Rows without a time.
    pub without_time: u64,
    /// Rows without any value.
    pub without_value: u64,
    /// Rows with a time that cannot be represented.
    pub time_out_of_range: u64,
    /// Rows whose time is not plausible.
    pub implausible: u64,
    /// The first of these times, in microseconds since 1970.
    pub first_implausible_us: Option<i64>,
    /// Rows older than the retention of their table.
    pub too_old: u64,
    /// Rows with tags that the store refuses.
    pub bad_tags: u64,
    /// The first of those reasons.
    pub bad_tags_reason: Option<String>,
    /// Lines of the file that cannot be parsed, or whose time cannot be parsed.
    pub bad_lines: u64,
    /// The fault of the first of them.
    pub bad_lines_reason: Option<String>,
    /// Integers beyond 63 bits. The other values of their rows are imported.
    pub too_large: u64,
    /// Texts that are too long. The other values of their rows are imported.
    pub too_long: u64,
    /// Rows with an ambiguous or skipped local time.
    pub clock_changes: u64,
    /// The first of these times.
    pub clock_changes_reason: Option<String>,
    /// Ambiguous or skipped local times for which the import chose a time by its rule.
    pub chosen_times: u64,
    /// Times that were truncated to whole microseconds.
    pub cut_times: u64,
    /// Decimals with more digits than a number keeps. The nearest number is imported.
    pub rounded: u64,
}

impl ImportCounts {
    /// Adds the counts of another piece.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.values += other.values;
        self.without_time += other.without_time;
        self.without_value += other.without_value;
        self.time_out_of_range += other.time_out_of_range;
        self.implausible += other.implausible;
        self.first_implausible_us = self.first_implausible_us.or(other.first_implausible_us);
        self.too_old += other.too_old;
        self.bad_tags += other.bad_tags;
        self.bad_lines += other.bad_lines;
        self.too_large += other.too_large;
        self.too_long += other.too_long;
        self.clock_changes += other.clock_changes;
        self.chosen_times += other.chosen_times;
        self.cut_times += other.cut_times;
        self.rounded += other.rounded;
        if self.bad_lines_reason.is_none() {
            self.bad_lines_reason.clone_from(&other.bad_lines_reason);
        }
        if self.clock_changes_reason.is_none() {
            self.clock_changes_reason.clone_from(&other.clock_changes_reason);
        }
        if self.bad_tags_reason.is_none() {
            self.bad_tags_reason.clone_from(&other.bad_tags_reason);
        }
    }

    /// Rows that were not imported.
    pub fn skipped(&self) -> u64 {
        let of_time = self.without_time + self.clock_changes + self.time_out_of_range;
        let of_bounds = self.implausible + self.too_old;
        of_time + of_bounds + self.without_value + self.bad_tags + self.bad_lines
    }

    /// Values that were not imported although their rows were.
    pub fn skipped_values(&self) -> u64 {
        self.too_large + self.too_long
    }
}
