//! Rewrites: a part that has deleted rows becomes a part without them.
//!
//! Merges leave out deleted rows as they go. A rewrite is for parts that no merge takes, and happens when there is nothing
//! to merge. It reads and writes the whole part, so a single deletion does not cause it at once. It happens
//! - when the store has taken [`Limits::quiet_rows`] rows since the deletion, so that all deletions of this time share it,
//! - when the table has half as many deletions as it may have, or
//! - when a caller asks for a compaction.
//!
//! Narrow parts may have rows of dropped tables. They are rewritten when all their tables are dropped, or on command.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::group::Merge;
use super::limits::Limits;
use super::plan::MergePlan;
use crate::part::Part;
use crate::tombstone::{Tombstone, Tombstones};
use crate::version::Version;

/// The parts to rewrite next, as merges of one input each; none when no part needs to be rewritten now.
pub(crate) fn choose_rewrites(
    version: &Version,
    tombstones: &Tombstones,
    is_dropped: &dyn Fn(u32) -> bool,
    limits: &Limits,
    by_command: bool,
) -> MergePlan {
    let is_due = |of: &&Arc<Tombstone>| {
        let age = version.sequence().saturating_sub(of.sequence);
        by_command || age >= limits.quiet_rows || tombstones.are_pressing(of.table)
    };
    let mut chosen: BTreeMap<u64, Arc<Part>> = BTreeMap::new();
    let mut bytes = 0;
    let has_dropped = |part: &&Arc<Part>| {
        let mut members = part.info.members();
        !part.is_damaged() && if by_command { members.any(is_dropped) } else { members.all(is_dropped) }
    };
    let of_dropped = version.narrow().iter().filter(has_dropped).take(limits.merges_max);
    for part in of_dropped {
        bytes += part.info.bytes;
        chosen.insert(part.info.id, part.clone());
        if bytes > limits.plan_bytes {
            return plan(chosen);
        }
    }
    for tombstone in tombstones.covered().filter(is_due) {
        let has_hidden = |part: &&Arc<Part>| {
            part.info.applied < tombstone.sequence
                && tombstone.touches(&part.info.extent())
                && !part.is_damaged()
                && !chosen.contains_key(&part.info.id)
        };
        let found: Vec<Arc<Part>> = version.parts(tombstone.table).filter(has_hidden).cloned().collect();
        for part in found {
            bytes += part.info.bytes;
            if !chosen.is_empty() && (bytes > limits.plan_bytes || chosen.len() >= limits.merges_max) {
                return plan(chosen);
            }
            chosen.insert(part.info.id, part);
        }
    }
    plan(chosen)
}

fn plan(chosen: BTreeMap<u64, Arc<Part>>) -> MergePlan {
    MergePlan { merges: chosen.into_values().map(|part| Merge { inputs: vec![part] }).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{LIMITS, part};
    use super::*;
    use crate::tombstone::tombstone;

    const DAY: i64 = 86_400_000_000;

    fn chosen(parts: Vec<Part>, tombstones: &Tombstones, by_command: bool) -> Vec<u64> {
        let version = Version::default().with(parts, &[]);
        let plan = choose_rewrites(&version, tombstones, &|_| false, &LIMITS, by_command);
        assert!(plan.merges.iter().all(|merge| merge.inputs.len() == 1));
        plan.merges.iter().map(|merge| merge.inputs[0].info.id).collect()
    }

    /// Three parts: of two days, and of another table.
    fn parts(newest: u64) -> Vec<Part> {
        vec![
            part(1, 0, (0, DAY - 1), 10, 1),
            part(2, 0, (DAY, 2 * DAY), 10, 2),
            part(3, 1, (0, DAY), 10, newest),
        ]
    }

    fn deletion(sequence: u64, covered: u64) -> Tombstones {
        let mut tombstones = Tombstones::default();
        tombstones.add(tombstone(sequence, &[0], (0, DAY), None));
        tombstones.saved(covered, &[]);
        tombstones
    }

    #[test]
    fn a_part_is_rewritten_on_command_or_when_the_deletion_is_old() {
        assert_eq!(chosen(parts(9), &deletion(5, 9), true), [1]);
        assert_eq!(chosen(parts(9), &deletion(5, 4), true), [0_u64; 0], "the manifest does not have it");
        assert_eq!(chosen(parts(9), &deletion(5, 9), false), [0_u64; 0]);
        assert_eq!(chosen(parts(5 + LIMITS.quiet_rows), &deletion(5, 9), false), [1]);
        assert_eq!(chosen(parts(9), &Tombstones::default(), true), [0_u64; 0]);
    }

    #[test]
    fn damaged_parts_stay_and_a_plan_has_a_bound() {
        let all = parts(9);
        all[0].set_damaged();
        assert_eq!(chosen(all, &deletion(5, 9), true), [0_u64; 0]);
        let many = (1..=20).map(|id| part(id, 0, (0, DAY), 10, id)).collect();
        assert_eq!(chosen(many, &deletion(50, 50), true).len(), LIMITS.merges_max);
        let large = (1..=3).map(|id| part(id, 0, (0, DAY), LIMITS.plan_bytes, id)).collect();
        assert_eq!(chosen(large, &deletion(50, 50), true), [1]);
    }
}
