//! Selects the series of a table that satisfy conditions on their tags.
//!
//! The search tries a pattern on each distinct value of its tag; or on each series that satisfies the other conditions, if
//! those are fewer. It holds the lock for a slice of them at a time, so that a new series need not wait for a pattern.

use parking_lot::RwLock;
use roaring::RoaringBitmap;
use store::{SeriesSet, TagColumn, TagMatcher, TagPredicate};

use super::series::{SeriesIndex, TagIndex, TaggedSeries};

/// Number of values that are tried under one lock. This takes some tens of microseconds.
const SLICE: usize = 1024;

/// A condition on a tag of the table.
#[derive(Clone, Copy)]
pub(crate) struct Condition<'a> {
    /// The number of the tag; `None` when the table has no such tag.
    tag: Option<u32>,
    predicate: &'a TagPredicate,
}

impl<'a> Condition<'a> {
    /// `tags` are the tags of the table in the order of their numbers.
    pub(crate) fn new(tags: &[TagColumn], matcher: &'a TagMatcher) -> Self {
        let tag = tags.iter().position(|column| *column.tag == *matcher.tag);
        Self { tag: tag.map(|tag| tag as u32), predicate: &matcher.predicate }
    }
}

/// The series of `table` with numbers below `series_end` that satisfy all conditions, without the dropped ones.
pub(crate) fn select(
    index: &RwLock<SeriesIndex>,
    table: u32,
    series_end: u32,
    dropped: &SeriesSet,
    conditions: &[Condition<'_>],
) -> SeriesSet {
    let (patterns, exact): (Vec<_>, Vec<_>) = conditions.iter().partition(|condition| {
        matches!(condition.predicate, TagPredicate::Matches(_) | TagPredicate::MatchesNot(_))
    });
    let mut set = select_exact(&index.read(), table, &exact);
    set.remove_range(series_end..);
    set -= dropped;
    for condition in patterns {
        let Some(tag) = condition.tag.filter(|_| !set.is_empty()) else { return SeriesSet::new() };
        let pattern = Pattern { index, table, tag, predicate: condition.predicate };
        set = match set.len() <= u64::from(pattern.values()) {
            true => pattern.keep_series(&set),
            false => pattern.with_values() & set,
        };
    }
    set
}

/// Applies all conditions that are not patterns. Each takes a few operations on sets.
fn select_exact(index: &SeriesIndex, table: u32, conditions: &[&Condition<'_>]) -> SeriesSet {
    let Some(series) = index.table_index(table) else { return SeriesSet::new() };
    let mut narrowed: Option<SeriesSet> = None;
    // The most selective conditions come first, so that the cost of a single value does not depend on the table.
    let mut conditions = conditions.to_vec();
    conditions.sort_by_key(|condition| match condition.predicate {
        TagPredicate::Is(_) => 0,
        TagPredicate::OneOf(_) => 1,
        _ => 2,
    });
    for Condition { tag, predicate } in conditions {
        let Some((tag, values)) = tag.and_then(|tag| Some((tag, series.tags.get(tag as usize)?))) else {
            match predicate {
                TagPredicate::Absent => continue,
                _ => return SeriesSet::new(),
            }
        };
        let of = |value: &String| index.with_value(values, tag, value);
        match predicate {
            TagPredicate::Is(value) => keep(&mut narrowed, union([value], of)),
            TagPredicate::OneOf(wanted) => keep(&mut narrowed, union(wanted, of)),
            TagPredicate::IsNot(value) => remove(&mut narrowed, values, union([value], of)),
            TagPredicate::NoneOf(unwanted) => remove(&mut narrowed, values, union(unwanted, of)),
            TagPredicate::Present => remove(&mut narrowed, values, SeriesSet::new()),
            TagPredicate::Absent => {
                values.present.remove_from(narrowed.get_or_insert_with(|| series.all.to_bitmap()));
            }
            TagPredicate::Matches(_) | TagPredicate::MatchesNot(_) => {
                unreachable!("BUG: patterns are not exact conditions")
            }
        }
    }
    narrowed.unwrap_or_else(|| series.all.to_bitmap())
}

fn union<'a, 'b>(
    values: impl IntoIterator<Item = &'b String>,
    of: impl Fn(&String) -> Option<TaggedSeries<'a>>,
) -> SeriesSet {
    let mut set = SeriesSet::new();
    for found in values.into_iter().filter_map(of) {
        unite(&mut set, &found);
    }
    set
}

fn unite(set: &mut SeriesSet, found: &TaggedSeries<'_>) {
    match found {
        TaggedSeries::One(id) => {
            set.insert(*id);
        }
        TaggedSeries::Shared(ids) if set.is_empty() => *set = ids.to_bitmap(),
        TaggedSeries::Shared(ids) => ids.unite_into(set),
    }
}

fn keep(narrowed: &mut Option<SeriesSet>, wanted: SeriesSet) {
    match narrowed {
        Some(set) => *set &= wanted,
        None => *narrowed = Some(wanted),
    }
}

/// Keeps the series that have the tag, without the unwanted ones.
fn remove(narrowed: &mut Option<SeriesSet>, values: &TagIndex, unwanted: SeriesSet) {
    match narrowed {
        Some(set) => values.present.keep_in(set),
        None => *narrowed = Some(values.present.to_bitmap()),
    }
    if let Some(set) = narrowed {
        *set -= unwanted;
    }
}

/// A pattern, and the tag that it is tried on.
struct Pattern<'a> {
    index: &'a RwLock<SeriesIndex>,
    table: u32,
    tag: u32,
    predicate: &'a TagPredicate,
}

impl Pattern<'_> {
    fn values(&self) -> u32 {
        tag_index(&self.index.read(), self.table, self.tag).map_or(0, TagIndex::values)
    }

    /// The series of a set whose values match.
    fn keep_series(&self, series: &SeriesSet) -> SeriesSet {
        let mut kept = SeriesSet::new();
        let mut rest = series.iter();
        let mut slice = [0; SLICE];
        loop {
            let slice = rest.next_many(&mut slice);
            if slice.is_empty() {
                return kept;
            }
            let index = self.index.read();
            let accepted = slice.iter().filter(|id| self.predicate.accepts(index.tag_value(**id, self.tag)));
            kept.append(accepted.copied()).expect("BUG: a set's numbers ascend");
        }
    }

    /// All series of the table whose values match.
    fn with_values(&self) -> SeriesSet {
        let mut found = SeriesSet::new();
        let end = self.values();
        let mut next = 0;
        while next < end {
            let slice = next..end.min(next + SLICE as u32);
            next = slice.end;
            let index = self.index.read();
            let values = tag_index(&index, self.table, self.tag).expect("BUG: values do not go away");
            // The single series of successive values ascend, so adding them is cheap.
            let mut single = Vec::new();
            for number in slice {
                if self.predicate.accepts(Some(index.text_of(values, self.tag, number))) {
                    match values.series_of(number) {
                        TaggedSeries::One(id) => single.push(id),
                        TaggedSeries::Shared(ids) => ids.unite_into(&mut found),
                    }
                }
            }
            drop(index);
            found |= RoaringBitmap::from_sorted_iter(single).expect("BUG: first series of values ascend");
        }
        found
    }
}

fn tag_index(index: &SeriesIndex, table: u32, tag: u32) -> Option<&TagIndex> {
    index.table_index(table)?.tags.get(tag as usize)
}

#[cfg(test)]
mod tests;
