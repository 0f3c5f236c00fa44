//! Groups: parts of one table whose partitions overlap. Chooses the merges within one group.

use std::ops::Range;
use std::sync::Arc;

use model::limits;

use super::limits::Limits;
use crate::part::Part;

/// A merge: parts that become one part.
#[derive(Debug, Clone)]
pub(crate) struct Merge {
    /// Oldest first.
    pub(crate) inputs: Vec<Arc<Part>>,
}

impl Merge {
    /// The sum of the bytes of the inputs.
    pub(crate) fn bytes(&self) -> u64 {
        self.inputs.iter().map(|part| part.info.bytes).sum()
    }

    /// Bytes that the merge rewrites for each part that it saves.
    pub(super) fn price(&self) -> u64 {
        self.bytes() / (self.inputs.len() as u64 - 1).max(1)
    }
}

/// The groups of parts of one table whose partitions overlap, each oldest first.
pub(super) fn groups(parts: &[Arc<Part>]) -> Vec<Vec<&Arc<Part>>> {
    let mut by_time: Vec<(usize, &Arc<Part>)> = parts.iter().enumerate().collect();
    by_time.sort_by_key(|(_, part)| part.info.partition.0);
    let mut groups: Vec<Vec<(usize, &Arc<Part>)>> = Vec::new();
    let mut end = i64::MIN;
    for (index, part) in by_time {
        match groups.last_mut() {
            Some(group) if part.info.partition.0 < end => group.push((index, part)),
            _ => groups.push(vec![(index, part)]),
        }
        end = end.max(part.info.partition.1);
    }
    groups.iter_mut().for_each(|group| group.sort_by_key(|(index, _)| *index));
    groups.into_iter().map(|group| group.into_iter().map(|(_, part)| part).collect()).collect()
}

/// At most one merge for each stretch of parts between the parts that no merge takes.
pub(super) fn choose_in_group<'a>(
    group: &'a [&'a Arc<Part>],
    sequence: u64,
    limits: &'a Limits,
) -> impl Iterator<Item = Merge> + 'a {
    let newest_full = group.iter().rposition(|part| limits.is_full(part));
    let mut end = group.len();
    std::iter::from_fn(move || {
        while end > 0 {
            let start = group[..end].iter().rposition(|part| limits.stays(part)).map_or(0, |index| index + 1);
            let stretch = &group[start..end];
            let buried = newest_full.is_some_and(|full| end <= full);
            let run = match buried {
                true => Some(0..stretch.len()),
                false => class_run(stretch, limits).or_else(|| quiet_run(stretch, sequence, limits)),
            };
            end = start.saturating_sub(1);
            let merge = run.and_then(|run| {
                let next = group.get(start + run.end);
                merge_of(&stretch[run], next.copied(), limits)
            });
            if let Some(merge) = merge {
                return Some(merge);
            }
        }
        None
    })
}

/// The neighbours that count for the smallest class with enough of them.
fn class_run(stretch: &[&Arc<Part>], limits: &Limits) -> Option<Range<usize>> {
    let mut end = stretch.len();
    let mut class = 0;
    while end > 0 {
        class = limits.class(stretch[end - 1].info.bytes).max(class);
        let larger = |part: &&Arc<Part>| limits.class(part.info.bytes) > class;
        let start = stretch[..end].iter().rposition(larger).map_or(0, |index| index + 1);
        if end - start >= limits.fan_in {
            return Some(start..end);
        }
        end = start;
    }
    None
}

/// In a stretch that gets no rows any more: parts that are not much larger than the sum of the newer ones.
fn quiet_run(stretch: &[&Arc<Part>], sequence: u64, limits: &Limits) -> Option<Range<usize>> {
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

/// A merge of as many parts of a run as the limits allow, from the oldest on.
fn merge_of(run: &[&Arc<Part>], next: Option<&Arc<Part>>, limits: &Limits) -> Option<Merge> {
    let (mut bytes, mut rows) = (0, 0);
    let mut fits = |part: &Arc<Part>| {
        bytes += part.info.bytes;
        rows += part.info.rows;
        bytes <= limits.part_bytes_max && rows <= limits.part_rows_max
    };
    let inputs_max = limits.inputs_max.min(limits::COMPACTION_INPUTS_MAX);
    let mut count = run.iter().copied().take(inputs_max).take_while(|part| fits(part)).count();
    // Parts of one flush may end with the same sequence. If a merge took some of them and an older part that spans their
    // days, its output would count as new as the parts that it left out.
    let following = |count: usize| run.get(count).copied().or(next).map(|part| part.info.sequence.1);
    while count > 0 && following(count) == Some(run[count - 1].info.sequence.1) {
        count -= 1;
    }
    (count >= 2).then(|| Merge { inputs: run[..count].iter().map(|part| Arc::clone(part)).collect() })
}
