//! Where merges have fallen behind: the bound on parts that overlap. A flush that would add to a crowd waits for the
//! compactor, memory fills, and appends are answered busy.
//!
//! Invariants:
//! 1. A group is a crowd only while [`choose`](super::choose) finds a merge in it. Each merge leaves less parts, and no
//!    flush adds some, so every crowd comes to an end whatever the limits are.
//! 2. Parts that no merge takes do not count: full ones, and damaged ones, which stay for good.

use std::sync::Arc;

use super::{Limits, choose_in_group, groups};
use crate::part::Part;
use crate::part::schema::Layout;
use crate::version::{Version, overlap};

/// Parts of one table that overlap and wait to be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// `None` for parts that tables share.
    pub(crate) table: Option<u32>,
    pub(crate) parts: usize,
}

/// The largest group that has as many parts as it may have, if there is one.
pub(crate) fn crowd(version: &Version, limits: &Limits) -> Option<Crowd> {
    let groups = version.families_overlapping(limits.overlap_max).flat_map(groups);
    let crowds = groups.filter_map(|group| {
        let parts = waiting(&group, limits);
        let is_crowd = parts >= limits.overlap_max
            && choose_in_group(&group, version.sequence(), limits).next().is_some();
        let info = &group[0].info;
        is_crowd.then(|| Crowd { table: (info.layout == Layout::Wide).then_some(info.tables.0), parts })
    });
    crowds.max_by_key(|crowd| crowd.parts)
}

/// Whether a group has as many parts as it may have. One in which there is nothing to merge is no [`Crowd`] for it.
pub(super) fn is_crowded(group: &[&Arc<Part>], limits: &Limits) -> bool {
    group.len() >= limits.overlap_max && waiting(group, limits) >= limits.overlap_max
}

/// Most parts of a group that have a moment in common and that a merge may take.
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
    fn as_many_parts_as_there_may_be_are_a_crowd() {
        assert_eq!(crowd(&version(Vec::new()), &TIGHT), None);
        assert_eq!(crowd(&version(one_day(0, &[10; 5])), &TIGHT), None);
        assert_eq!(crowd(&version(one_day(0, &[10; 6])), &TIGHT), Some(Crowd { table: Some(0), parts: 6 }));
        let two = one_day(0, &[10; 6]).into_iter().chain(one_day(1, &[10; 8]));
        assert_eq!(crowd(&version(two), &TIGHT), Some(Crowd { table: Some(1), parts: 8 }));
    }

    #[test]
    fn what_no_merge_takes_does_not_count() {
        let full = LIMITS.part_bytes_max / 2;
        assert_eq!(crowd(&version(one_day(0, &[full; 20])), &TIGHT), None);
        let some = version(one_day(0, &[full, full, full, 10, 10, 10, 10, 10]));
        assert_eq!(crowd(&some, &TIGHT), None, "five that are small");
        let damaged = version(one_day(0, &[10; 7]));
        assert!(crowd(&damaged, &TIGHT).is_some());
        damaged.wide(0)[0].set_damaged();
        assert!(crowd(&damaged, &TIGHT).is_some());
        damaged.wide(0)[1].set_damaged();
        assert_eq!(crowd(&damaged, &TIGHT), None);
    }

    #[test]
    fn parts_between_which_nothing_can_be_merged_are_no_crowd() {
        // Each class has less than four.
        let at_rest = version(one_day(0, &[900, 900, 900, 300, 300, 300, 10, 10, 10]));
        assert!(choose(&at_rest, &TIGHT).merges.is_empty());
        assert_eq!(crowd(&at_rest, &TIGHT), None);
        // Damaged ones leave no four neighbours.
        let apart = version(one_day(0, &[10; 19]));
        (3..19).step_by(4).for_each(|place| apart.wide(0)[place].set_damaged());
        assert!(choose(&apart, &TIGHT).merges.is_empty());
        assert_eq!(crowd(&apart, &TIGHT), None);
    }

    #[test]
    fn parts_that_follow_each_other_in_time_do_not_add_up() {
        let days = |count: u64| {
            let day = |n: u64| (n as i64 % 10 * DAY, (n as i64 % 10 + 1) * DAY);
            (0..count).map(|n| part(n + 1, 0, day(n), 10, n + 1)).collect::<Vec<_>>()
        };
        assert_eq!(crowd(&version(days(50)), &TIGHT), None, "five of each day");
        // One that spans all days makes one group of them and is the sixth of each.
        let spanned = || days(50).into_iter().chain([part(99, 0, (0, 10 * DAY), 10, 99)]);
        assert_eq!(crowd(&version(spanned()), &TIGHT).map(|crowd| crowd.parts), Some(6));
        assert_eq!(crowd(&version(spanned()), &Limits { overlap_max: 7, ..LIMITS }), None);
    }

    #[test]
    fn a_crowd_is_merged_before_what_is_cheaper() {
        let parts = || one_day(0, &[5; 4]).into_iter().chain(one_day(1, &[40; 6]));
        let first = |limits: &Limits| choose(&version(parts()), limits).merges[0].inputs[0].info.tables.0;
        assert_eq!((first(&LIMITS), first(&TIGHT)), (0, 1));
    }

    #[test]
    fn what_is_at_rest_is_far_from_a_crowd_with_the_default_limits() {
        let limits = Limits::default();
        assert!(limits.resting_max(0) * 3 <= limits.overlap_max, "{}", limits.resting_max(0));
        assert!(simulation::LIMITS.resting_max(0) <= simulation::LIMITS.overlap_max);
    }
}
