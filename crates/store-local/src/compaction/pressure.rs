//! Overlap pressure: merges have fallen behind, and a group has as many overlapping parts as it may have. Then the
//! flusher waits for the compactor, memory fills, and the store answers appends busy.
//!
//! Invariants:
//! 1. A group is under pressure only while [`choose`](super::choose) finds a merge in it. Each merge leaves fewer parts,
//!    and no flush adds any, so the pressure ends whatever the limits are.
//! 2. Full and damaged parts do not count, because no merge takes them.

use std::sync::Arc;

use super::group::{choose_in_group, groups};
use super::limits::Limits;
use crate::part::{Part, PartLayout};
use crate::version::{Version, overlap};

/// The overlapping parts of one table that a flush waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverlapPressure {
    /// The table; `None` for parts that tables share.
    pub(crate) table: Option<u32>,
    pub(crate) parts: usize,
}

/// The pressure in the group with the most overlapping parts; `None` when no group is under pressure.
pub(crate) fn overlap_pressure(version: &Version, limits: &Limits) -> Option<OverlapPressure> {
    let groups = version.families_overlapping(limits.overlap_max).flat_map(groups);
    let pressures = groups.filter_map(|group| {
        let parts = waiting(&group, limits);
        let is_pressure = parts >= limits.overlap_max
            && choose_in_group(&group, version.sequence(), limits).next().is_some();
        let info = &group[0].info;
        is_pressure.then(|| OverlapPressure {
            table: (info.layout == PartLayout::Wide).then_some(info.tables.0),
            parts,
        })
    });
    pressures.max_by_key(|pressure| pressure.parts)
}

/// Whether a group has as many overlapping parts as it may have. Such a group is not an [`OverlapPressure`] if it has
/// nothing to merge.
pub(super) fn is_under_pressure(group: &[&Arc<Part>], limits: &Limits) -> bool {
    group.len() >= limits.overlap_max && waiting(group, limits) >= limits.overlap_max
}

/// The largest number of parts of a group that have a moment in common and that a merge may take.
fn waiting(group: &[&Arc<Part>], limits: &Limits) -> usize {
    overlap(group.iter().copied().filter(|part| !limits.stays(part)))
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{LIMITS, part};
    use super::super::{choose, simulation};
    use super::*;

    const DAY: i64 = 86_400_000_000;
    const TIGHT: Limits = Limits { overlap_max: 6, ..LIMITS };

    /// Parts of one table and day with these bytes, oldest first.
    fn one_day(table: u32, bytes: &[u64]) -> Vec<Part> {
        let part = |(n, bytes): (usize, &u64)| {
            let id = u64::from(table) * 1_000 + n as u64 + 1;
            part(id, table, (0, DAY), *bytes, id)
        };
        bytes.iter().enumerate().map(part).collect()
    }

    fn version(parts: impl IntoIterator<Item = Part>) -> Version {
        Version::default().with(parts, &[])
    }

    #[test]
    fn as_many_parts_as_there_may_be_are_pressure() {
        assert_eq!(overlap_pressure(&version(Vec::new()), &TIGHT), None);
        assert_eq!(overlap_pressure(&version(one_day(0, &[10; 5])), &TIGHT), None);
        assert_eq!(
            overlap_pressure(&version(one_day(0, &[10; 6])), &TIGHT),
            Some(OverlapPressure { table: Some(0), parts: 6 })
        );
        let two = one_day(0, &[10; 6]).into_iter().chain(one_day(1, &[10; 8]));
        assert_eq!(
            overlap_pressure(&version(two), &TIGHT),
            Some(OverlapPressure { table: Some(1), parts: 8 })
        );
    }

    #[test]
    fn what_no_merge_takes_does_not_count() {
        let full = LIMITS.part_bytes_max / 2;
        assert_eq!(overlap_pressure(&version(one_day(0, &[full; 20])), &TIGHT), None);
        let some = version(one_day(0, &[full, full, full, 10, 10, 10, 10, 10]));
        assert_eq!(overlap_pressure(&some, &TIGHT), None, "five that are small");
        let damaged = version(one_day(0, &[10; 7]));
        assert!(overlap_pressure(&damaged, &TIGHT).is_some());
        damaged.wide(0)[0].set_damaged();
        assert!(overlap_pressure(&damaged, &TIGHT).is_some());
        damaged.wide(0)[1].set_damaged();
        assert_eq!(overlap_pressure(&damaged, &TIGHT), None);
    }

    #[test]
    fn parts_between_which_nothing_can_be_merged_are_no_pressure() {
        // Each class has less than four.
        let at_rest = version(one_day(0, &[900, 900, 900, 300, 300, 300, 10, 10, 10]));
        assert!(choose(&at_rest, &TIGHT).merges.is_empty());
        assert_eq!(overlap_pressure(&at_rest, &TIGHT), None);
        // Damaged ones leave no four neighbours.
        let apart = version(one_day(0, &[10; 19]));
        (3..19).step_by(4).for_each(|index| apart.wide(0)[index].set_damaged());
        assert!(choose(&apart, &TIGHT).merges.is_empty());
        assert_eq!(overlap_pressure(&apart, &TIGHT), None);
    }

    #[test]
    fn parts_that_follow_each_other_in_time_do_not_add_up() {
        let days = |count: u64| {
            let day = |n: u64| (n as i64 % 10 * DAY, (n as i64 % 10 + 1) * DAY);
            (0..count).map(|n| part(n + 1, 0, day(n), 10, n + 1)).collect::<Vec<_>>()
        };
        assert_eq!(overlap_pressure(&version(days(50)), &TIGHT), None, "five of each day");
        // One that spans all days makes one group of them and is the sixth of each.
        let spanned = || days(50).into_iter().chain([part(99, 0, (0, 10 * DAY), 10, 99)]);
        assert_eq!(overlap_pressure(&version(spanned()), &TIGHT).map(|pressure| pressure.parts), Some(6));
        assert_eq!(overlap_pressure(&version(spanned()), &Limits { overlap_max: 7, ..LIMITS }), None);
    }

    #[test]
    fn a_group_under_pressure_is_merged_before_cheaper_ones() {
        let parts = || one_day(0, &[5; 4]).into_iter().chain(one_day(1, &[40; 6]));
        let first = |limits: &Limits| choose(&version(parts()), limits).merges[0].inputs[0].info.tables.0;
        assert_eq!((first(&LIMITS), first(&TIGHT)), (0, 1));
    }

    #[test]
    fn a_group_at_rest_is_far_from_pressure_with_the_default_limits() {
        let limits = Limits::default();
        assert!(limits.resting_max(0) * 3 <= limits.overlap_max, "{}", limits.resting_max(0));
        assert!(simulation::LIMITS.resting_max(0) <= simulation::LIMITS.overlap_max);
    }
}
