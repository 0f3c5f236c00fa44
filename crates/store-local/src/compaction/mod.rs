//! Which parts are merged next: a pure decision over the parts that there are. compactor.rs carries it out.
//!
//! Parts of one table whose partitions overlap form a *group*; within it the order of sequences says which part is
//! newer. Flushes add small parts at the new end. Parts have classes by size, each [`Limits::fan_in`] times larger
//! than the one before, and a part counts as at least as large as all newer ones. As soon as `fan_in` neighbours count
//! for the same class they become one part, so that a row is rewritten about once for each class it passes and a group
//! that is merged faster than it is written to has never more parts than `Limits::resting_max`. A part of half the largest
//! size is *full* and stays as it is. What bounds a group that is written to faster is in crowd.rs.
//!
//! Two rules bring groups to rest. What lies between full parts gets no company any more and becomes one part. A group
//! that was not written to while the store took [`Limits::quiet_rows`] rows merges each part with newer ones that
//! together are not much smaller, which leaves it with a few.
//!
//! Invariants:
//! 1. A merge takes neighbours in the order of sequences of one group and leaves none out between them (manifest.rs,
//!    invariant 4).
//! 2. A merge has two inputs at least, so no plan comes again once it was carried out.
//! 3. The inputs of a merge together are not larger than the largest part may be.

mod crowd;
#[cfg(test)]
mod simulation;

use std::ops::Range;
use std::sync::Arc;

use model::limits;

use crate::part::Part;
use crate::version::Version;

pub(crate) use crowd::{Crowd, crowd};

/// By what compaction decides which parts to merge. Defaults are the limits of `model::limits`; tests use tiny ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Neighbours of one class that become a part of the next.
    pub fan_in: usize,
    /// Most parts that one merge reads; never more than the limit of `model::limits`.
    pub inputs_max: usize,
    /// Bytes of the smallest class.
    pub class_bytes: u64,
    /// Most bytes of the inputs of a merge; a part of half of that is full.
    pub part_bytes_max: u64,
    /// Most rows of the inputs of a merge; a part of half of that is full.
    pub part_rows_max: u64,
    /// Rows that the store takes elsewhere until a group counts as quiet.
    pub quiet_rows: u64,
    /// Of a quiet group a part is merged with newer ones if it has at most so many times their bytes.
    pub quiet_ratio: u64,
    /// Overlapping parts of one table that can be merged at which flushes wait for merges.
    pub overlap_max: usize,
    /// Most merges of one plan.
    pub merges_max: usize,
    /// Bytes of inputs above which a plan gets no further merge.
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
    /// Classes below that of full parts.
    #[cfg(test)]
    fn classes(&self) -> usize {
        self.class(self.part_bytes_max / 2) + 1
    }

    /// The class of a part that is not full.
    fn class(&self, bytes: u64) -> usize {
        let mut class = 0;
        let mut bound = self.class_bytes;
        while bytes >= bound {
            class += 1;
            bound = bound.saturating_mul(self.fan_in as u64);
        }
        class
    }

    fn is_full(&self, part: &Part) -> bool {
        2 * part.info.bytes >= self.part_bytes_max || 2 * part.info.rows >= self.part_rows_max
    }

    /// Whether no merge takes the part.
    fn stays(&self, part: &Part) -> bool {
        self.is_full(part) || part.is_damaged()
    }

    /// Most parts of a group for which [`choose`] finds nothing to do: each full part, one between two of them, and
    /// less than `fan_in` of each class at the end.
    #[cfg(test)]
    pub(crate) fn resting_max(&self, full: usize) -> usize {
        2 * full + self.classes() * (self.fan_in - 1)
    }
}

/// What to do next; nothing if it has no merges. All of it takes effect with one edit of the manifest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) merges: Vec<Merge>,
}

/// Parts that become one.
#[derive(Debug, Clone)]
pub(crate) struct Merge {
    /// Oldest first.
    pub(crate) inputs: Vec<Arc<Part>>,
}

impl Merge {
    /// Bytes of the inputs.
    pub(crate) fn bytes(&self) -> u64 {
        self.inputs.iter().map(|part| part.info.bytes).sum()
    }

    /// Bytes rewritten for each part less.
    fn price(&self) -> u64 {
        self.bytes() / (self.inputs.len() as u64 - 1)
    }
}

/// Decides what is merged next: first what flushes wait for, then what costs least for each part less, and as much of
/// that as one edit should change.
pub(crate) fn choose(version: &Version, limits: &Limits) -> Plan {
    let mut found = Vec::new();
    for parts in version.families() {
        for group in groups(parts) {
            let waited_for = crowd::is_crowded(&group, limits);
            let merges = choose_in_group(&group, version.sequence(), limits);
            found.extend(merges.map(|merge| (!waited_for, merge)));
        }
    }
    found.sort_by_key(|(can_wait, merge)| (*can_wait, merge.price()));
    let mut found: Vec<Merge> = found.into_iter().map(|(_, merge)| merge).collect();
    let mut bytes = 0;
    let fits = |merge: &Merge| {
        bytes += merge.bytes();
        bytes <= limits.plan_bytes
    };
    let count = found.iter().take(limits.merges_max).map(fits).take_while(|fits| *fits).count();
    found.truncate(count.max(1));
    Plan { merges: found }
}

/// The parts of one table by overlapping partitions, each group oldest first.
fn groups(parts: &[Arc<Part>]) -> Vec<Vec<&Arc<Part>>> {
    let mut by_time: Vec<(usize, &Arc<Part>)> = parts.iter().enumerate().collect();
    by_time.sort_by_key(|(_, part)| part.info.partition.0);
    let mut groups: Vec<Vec<(usize, &Arc<Part>)>> = Vec::new();
    let mut end = i64::MIN;
    for (place, part) in by_time {
        match groups.last_mut() {
            Some(group) if part.info.partition.0 < end => group.push((place, part)),
            _ => groups.push(vec![(place, part)]),
        }
        end = end.max(part.info.partition.1);
    }
    groups.iter_mut().for_each(|group| group.sort_by_key(|(place, _)| *place));
    groups.into_iter().map(|group| group.into_iter().map(|(_, part)| part).collect()).collect()
}

/// At most one merge for each stretch of parts between those that stay as they are.
fn choose_in_group<'a>(
    group: &'a [&'a Arc<Part>],
    sequence: u64,
    limits: &'a Limits,
) -> impl Iterator<Item = Merge> + 'a {
    let newest_full = group.iter().rposition(|part| limits.is_full(part));
    let mut end = group.len();
    std::iter::from_fn(move || {
        while end > 0 {
            let start = group[..end].iter().rposition(|part| limits.stays(part)).map_or(0, |place| place + 1);
            let stretch = &group[start..end];
            let buried = newest_full.is_some_and(|full| end <= full);
            let run = match buried {
                true => Some(0..stretch.len()),
                false => crowded(stretch, limits).or_else(|| quiet(stretch, sequence, limits)),
            };
            end = start.saturating_sub(1);
            let merge = run.and_then(|run| {
                let next = group.get(start + run.end);
                merge(&stretch[run], next.copied(), limits)
            });
            if let Some(merge) = merge {
                return Some(merge);
            }
        }
        None
    })
}

/// The smallest class that enough neighbours count for.
fn crowded(stretch: &[&Arc<Part>], limits: &Limits) -> Option<Range<usize>> {
    let mut end = stretch.len();
    let mut class = 0;
    while end > 0 {
        class = limits.class(stretch[end - 1].info.bytes).max(class);
        let larger = |part: &&Arc<Part>| limits.class(part.info.bytes) > class;
        let start = stretch[..end].iter().rposition(larger).map_or(0, |place| place + 1);
        if end - start >= limits.fan_in {
            return Some(start..end);
        }
        end = start;
    }
    None
}

/// Of a stretch that is not written to any more: parts that are not much larger than the newer ones together.
fn quiet(stretch: &[&Arc<Part>], sequence: u64, limits: &Limits) -> Option<Range<usize>> {
    let newest = stretch.last()?.info.sequence.1;
    if sequence.saturating_sub(newest) < limits.quiet_rows {
        return None;
    }
    (1..=stretch.len()).rev().find_map(|end| {
        let mut bytes = stretch[end - 1].info.bytes;
        let mut start = end - 1;
        while start > 0 && stretch[start - 1].info.bytes <= limits.quiet_ratio.saturating_mul(bytes) {
            start -= 1;
            bytes += stretch[start].info.bytes;
        }
        (end - start >= 2).then_some(start..end)
    })
}

/// As many parts of a run as one merge may take, from the oldest on.
fn merge(run: &[&Arc<Part>], next: Option<&Arc<Part>>, limits: &Limits) -> Option<Merge> {
    let (mut bytes, mut rows) = (0, 0);
    let mut fits = |part: &Arc<Part>| {
        bytes += part.info.bytes;
        rows += part.info.rows;
        bytes <= limits.part_bytes_max && rows <= limits.part_rows_max
    };
    let inputs_max = limits.inputs_max.min(limits::COMPACTION_INPUTS_MAX);
    let mut count = run.iter().copied().take(inputs_max).take_while(|part| fits(part)).count();
    // Parts of one flush may end with the same sequence. If a merge took some of them and an older part that spans
    // their days, its output would count as new as those it left out.
    let following = |count: usize| run.get(count).copied().or(next).map(|part| part.info.sequence.1);
    while count > 0 && following(count) == Some(run[count - 1].info.sequence.1) {
        count -= 1;
    }
    (count >= 2).then(|| Merge { inputs: run[..count].iter().map(|part| Arc::clone(part)).collect() })
}

#[cfg(test)]
mod tests {
    use super::simulation::{LIMITS, part};
    use super::*;

    const DAY: i64 = 86_400_000_000;

    fn version(parts: Vec<Part>) -> Version {
        Version::default().with(parts, &[])
    }

    /// Parts of one day with these bytes, oldest first, each with one row.
    fn one_day(bytes: &[u64]) -> Version {
        let parts = bytes.iter().enumerate();
        version(parts.map(|(n, bytes)| part(n as u64 + 1, 0, (0, DAY), *bytes, n as u64 + 1)).collect())
    }

    fn chosen(version: &Version) -> Vec<Vec<u64>> {
        let merges = choose(version, &LIMITS).merges;
        merges.iter().map(|merge| merge.inputs.iter().map(|part| part.info.id).collect()).collect()
    }

    #[test]
    fn a_class_is_merged_when_it_has_enough_parts() {
        assert!(chosen(&one_day(&[])).is_empty());
        assert!(chosen(&one_day(&[10, 10, 10])).is_empty());
        assert_eq!(chosen(&one_day(&[10, 10, 10, 10])), [[1, 2, 3, 4]]);
        // The large one has no part of its class beside it; the small ones are newer.
        assert_eq!(chosen(&one_day(&[900, 10, 10, 10, 10])), [[2, 3, 4, 5]]);
        // Older small ones count for the class of the newer large one.
        assert_eq!(chosen(&one_day(&[10, 10, 10, 900])), [[1, 2, 3, 4]]);
    }

    #[test]
    fn no_merge_has_more_inputs_than_places_can_tell_apart() {
        let limits = Limits { inputs_max: usize::MAX, part_bytes_max: u64::MAX / 4, ..LIMITS };
        let merges = choose(&one_day(&[10; 100]), &limits).merges;
        assert_eq!(merges[0].inputs.len(), model::limits::COMPACTION_INPUTS_MAX);
    }

    #[test]
    fn the_sum_of_a_merge_has_a_bound_and_full_parts_stay() {
        let half = LIMITS.part_bytes_max / 2;
        assert!(chosen(&one_day(&[half; 9])).is_empty());
        let below = half - 1;
        assert_eq!(chosen(&one_day(&[below; 4])), [[1, 2]]);
        // Between full parts two are enough.
        assert_eq!(chosen(&one_day(&[half, 10, 10, half, 10, 10])), [[2, 3]]);
        assert!(chosen(&one_day(&[half, 10, half, 10, 10])).is_empty());
    }

    #[test]
    fn nothing_is_merged_across_a_damaged_part() {
        let version = one_day(&[10; 7]);
        version.wide(0)[3].set_damaged();
        assert!(chosen(&version).is_empty());
        let version = one_day(&[10; 8]);
        version.wide(0)[2].set_damaged();
        assert_eq!(chosen(&version), [[4, 5, 6, 7, 8]]);
    }

    #[test]
    fn a_quiet_group_settles_without_rewriting_much_for_little() {
        let quiet = |bytes: &[u64]| {
            let later = part(99, 1, (0, DAY), 10, LIMITS.quiet_rows + 99);
            chosen(&one_day(bytes).with(vec![later], &[]))
        };
        assert_eq!(quiet(&[300, 100, 20]), [[1, 2]]);
        assert_eq!(quiet(&[300, 100, 30]), [[1, 2, 3]]);
        assert!(quiet(&[900, 100, 20]).is_empty());
        assert!(chosen(&one_day(&[300, 100, 30])).is_empty(), "not quiet");
    }

    #[test]
    fn days_are_merged_apart_unless_a_part_spans_them() {
        let days = |spanning: bool| {
            let mut parts: Vec<Part> = (0..6)
                .map(|n| part(n + 1, 0, (n as i64 % 2 * DAY, (n as i64 % 2 + 1) * DAY), 10, n + 1))
                .collect();
            if spanning {
                parts.push(part(7, 0, (0, 2 * DAY), 10, 7));
            }
            version(parts)
        };
        assert!(chosen(&days(false)).is_empty(), "three in each");
        assert_eq!(chosen(&days(true)), [[1, 2, 3, 4, 5, 6, 7]]);
    }

    #[test]
    fn small_merges_of_many_tables_share_a_plan() {
        let parts = (0..40_u64).map(|n| part(n + 1, n as u32 / 4, (0, DAY), 10, n + 1)).collect();
        assert_eq!(chosen(&version(parts)).len(), LIMITS.merges_max.min(10));
    }
}
