//! The next plan: chooses among the merges of all groups.

use super::group::{Merge, choose_in_group, groups};
use super::limits::Limits;
use super::pressure::is_under_pressure;
use crate::version::Version;

/// The merges to execute next; none when there is nothing to merge. All of them take effect with one edit of the manifest.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergePlan {
    pub(crate) merges: Vec<Merge>,
}

/// Chooses the next merges: first those that flushes wait for, then those that cost least for each part that they save,
/// and as many as one edit should contain.
pub(crate) fn choose(version: &Version, limits: &Limits) -> MergePlan {
    let mut found = Vec::new();
    for parts in version.families() {
        for group in groups(parts) {
            let waited_for = is_under_pressure(&group, limits);
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
    MergePlan { merges: found }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{LIMITS, part};
    use super::*;
    use crate::part::Part;

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
