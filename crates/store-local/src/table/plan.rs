//! The plan of a read, and its tasks. The readers take one task after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use model::TimeRange;
use store::{Order, ReadOrder, SeriesSet, StoreError};

use super::block::{Blocks, Scope, Series};
use super::order::RowOrder;
use crate::catalog::Slot;
use crate::chunk::{Chunk, Extent};
use crate::core::Core;
use crate::part::Part;
use crate::tombstone::{Hidden, hidden_in};

/// The number of rows that are worth a task of their own.
const TASK_ROWS: u64 = 128 * 1024;

/// A column of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// A tag, by its number.
    Tag(usize),
    Ts,
    /// A field, by its slot.
    Field(usize),
    /// All numbers of a key, by the slots of both kinds.
    Numbers {
        integers: usize,
        floats: usize,
    },
}

/// A part or a chunk, and the extent of its rows.
#[derive(Clone)]
pub(crate) struct Source {
    /// Newer sources have higher ranks.
    pub(crate) rank: u32,
    pub(crate) extent: Extent,
    /// The number of rows of the table that is read.
    pub(super) rows: u64,
    kind: Kind,
    hidden: Hidden,
    /// A share `(from, to, of)` of the pages of the table in a part: from `from / of` to `to / of`.
    share: (usize, usize, usize),
}

#[derive(Clone)]
enum Kind {
    Part(Arc<Part>),
    Chunk(Arc<Chunk>),
}

impl Source {
    pub(crate) fn open(&self, core: &Core, scope: &Scope) -> Result<Blocks, StoreError> {
        match &self.kind {
            Kind::Part(part) => Blocks::of_part(core, part, scope, self.share),
            Kind::Chunk(chunk) => Ok(Blocks::of_chunk(chunk)),
        }
        .map(|blocks| blocks.without(&self.hidden))
    }

    fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (&self.extent, &other.extent);
        a.series.0 <= b.series.1 && b.series.0 <= a.series.1 && a.ts.0 <= b.ts.1 && b.ts.0 <= a.ts.1
    }
}

/// Makes ranked sources of parts and chunks, which are oldest first. `tombstones` are those of the table.
pub(crate) fn sources(
    table: u32,
    parts: &[Arc<Part>],
    chunks: &[Arc<Chunk>],
    tombstones: &Hidden,
) -> Vec<Source> {
    let source = |extent: Extent, rows: u64, newest: u64, kind: Kind| {
        let hidden = tombstones.as_ref().and_then(|all| hidden_in(all, newest, &extent));
        Source { rank: 0, extent, rows, kind, hidden, share: (0, 1, 1) }
    };
    let of_part = |part: &Arc<Part>| {
        let info = &part.info;
        source(info.extent(), info.rows_of(table), info.applied, Kind::Part(part.clone()))
    };
    let of_chunk = |chunk: &Arc<Chunk>| {
        let (extent, newest) = (chunk.extent()?, chunk.sequences().1);
        Some(source(extent, chunk.len() as u64, newest, Kind::Chunk(chunk.clone())))
    };
    let all = parts.iter().map(of_part).chain(chunks.iter().filter_map(of_chunk));
    all.enumerate().map(|(rank, source)| Source { rank: rank as u32, ..source }).collect()
}

/// The plan of a read.
#[derive(Clone)]
pub(crate) struct ReadPlan {
    pub(crate) core: Arc<Core>,
    pub(crate) table: u32,
    /// The field columns to read, by key, then by type.
    pub(crate) slots: Vec<Slot>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) range: TimeRange,
    /// The series to read; all series of the sources when `None`. Then the sources have no series of other tables.
    pub(crate) series: Option<Arc<SeriesSet>>,
    pub(crate) order: ReadOrder,
    /// Whether the arrays of tags are run-end encoded.
    pub(crate) tag_runs: bool,
}

/// A unit of work of a reader.
pub(crate) enum Task {
    /// This number of rows, without columns.
    Count(u64),
    Merge(RowOrder, Vec<(Source, Scope)>),
}

impl ReadPlan {
    /// The slots of the key of a slot.
    pub(crate) fn siblings(&self, slot: usize) -> impl Iterator<Item = usize> {
        let key = self.slots[slot].key;
        self.slots.partition_point(|other| other.key < key)
            ..self.slots.partition_point(|other| other.key <= key)
    }

    fn needs_runs(&self) -> bool {
        matches!(self.order, ReadOrder::LastRow(_))
            || self.outputs.iter().any(|output| matches!(output, Output::Tag(_)))
    }

    fn scope(&self, bounds: (u32, u32), order: Order, runs: bool) -> Scope {
        let series = Series { bounds: self.narrowed(bounds), set: self.series.clone() };
        Scope { table: self.table, series, range: self.range, order, runs }
    }

    /// The bounds, cut to the wanted series, so that the read visits only some pages of a large part.
    fn narrowed(&self, (first, last): (u32, u32)) -> (u32, u32) {
        let ends = self.series.as_deref().and_then(|set| Some((set.min()?, set.max()?)));
        ends.map_or((first, last), |(least, most)| (first.max(least), last.min(most)))
    }

    /// The sources that may have wanted rows.
    fn relevant(&self, sources: Vec<Source>) -> Vec<Source> {
        let all = Series { bounds: (0, u32::MAX), set: self.series.clone() };
        let (start, end) = (self.range.start.micros(), self.range.end.micros());
        let has = |source: &Source| {
            source.extent.ts.0 < end && start <= source.extent.ts.1 && all.has_any(source.extent.series)
        };
        sources.into_iter().filter(has).collect()
    }

    /// Divides the work into tasks. `series` gives all series that may have rows; it is called only where the order needs
    /// them.
    pub(crate) fn tasks(
        &self,
        sources: Vec<Source>,
        readers_max: usize,
        series: impl FnOnce() -> Vec<u32>,
    ) -> VecDeque<Task> {
        let sources = self.relevant(sources);
        if sources.is_empty() || self.range.is_empty() {
            return VecDeque::new();
        }
        match self.order {
            ReadOrder::Any | ReadOrder::LastRow(_) => {
                let groups = groups(sources);
                groups.into_iter().flat_map(|group| self.group_tasks(group, readers_max)).collect()
            }
            ReadOrder::SeriesThenTime => self.series_tasks(sources, readers_max).into(),
            ReadOrder::Time(order) => [self.time_task(&sources, order, &series())].into(),
        }
    }

    /// The tasks for a group of sources that overlaps no other source.
    fn group_tasks(&self, group: Vec<Source>, readers_max: usize) -> Vec<Task> {
        let [only] = group.as_slice() else { return self.series_tasks(group, readers_max) };
        let (start, end) = (self.range.start.micros(), self.range.end.micros());
        let is_whole = start <= only.extent.ts.0 && only.extent.ts.1 < end && self.series.is_none();
        let is_whole = is_whole && only.hidden.is_none();
        if let Kind::Part(_) = only.kind
            && self.outputs.is_empty()
            && is_whole
        {
            return vec![Task::Count(only.rows)];
        }
        let shares = match only.kind {
            Kind::Part(_) if readers_max > 1 => only.rows.div_ceil(TASK_ROWS).max(1) as usize,
            _ => 1,
        };
        let task = |share: usize| {
            let source = Source { share: (share, share + 1, shares), ..only.clone() };
            let scope = self.scope((0, u32::MAX), Order::Ascending, self.needs_runs());
            Task::Merge(RowOrder::Series, vec![(source, scope)])
        };
        (0..shares).map(task).collect()
    }

    /// The tasks for ranges of series, ascending.
    fn series_tasks(&self, group: Vec<Source>, readers_max: usize) -> Vec<Task> {
        let rows: u64 = group.iter().map(|source| source.rows).sum();
        let first = group.iter().map(|source| source.extent.series.0).min().unwrap_or(0);
        let last = group.iter().map(|source| source.extent.series.1).max().unwrap_or(0);
        let tasks = match readers_max {
            0 | 1 => 1,
            // More tasks than readers, because series differ in their number of rows.
            _ => (rows / TASK_ROWS).clamp(1, 4 * readers_max as u64),
        };
        let runs = self.needs_runs() || group.len() > 1;
        let bounds = cut(self.series.as_deref(), (first, last), tasks);
        let task = |bounds: &(u32, u32)| {
            let inside = group
                .iter()
                .filter(|source| source.extent.series.0 <= bounds.1 && bounds.0 <= source.extent.series.1);
            let scope = self.scope(*bounds, Order::Ascending, runs);
            Task::Merge(RowOrder::Series, inside.map(|source| (source.clone(), scope.clone())).collect())
        };
        bounds.iter().map(task).collect()
    }

    fn time_task(&self, sources: &[Source], order: Order, series: &[u32]) -> Task {
        let of_series = |id: &u32| {
            let scope = Scope {
                table: self.table,
                series: Series::one(*id),
                range: self.range,
                order,
                runs: self.needs_runs() || sources.len() > 1 || series.len() > 1,
            };
            let has = |source: &&Source| scope.series.has_any(source.extent.series);
            sources.iter().filter(has).map(|source| (source.clone(), scope.clone())).collect::<Vec<_>>()
        };
        Task::Merge(RowOrder::Time(order), series.iter().flat_map(of_series).collect())
    }
}

/// Splits a range of series into at most `count` ranges with about the same number of wanted series each.
pub(super) fn cut(wanted: Option<&SeriesSet>, (first, last): (u32, u32), count: u64) -> Vec<(u32, u32)> {
    let before = match wanted {
        Some(set) => first.checked_sub(1).map_or(0, |before| set.rank(before)),
        None => first.into(),
    };
    let present = wanted.map_or(u64::from(last) + 1, |set| set.rank(last)) - before;
    let count = count.min(present).max(1);
    let begin = |index: u64| match wanted {
        _ if index == 0 => first,
        Some(set) => set.select((before + present * index / count) as u32).unwrap_or(last),
        None => (before + present * index / count) as u32,
    };
    let end = |index: u64| if index + 1 == count { last } else { begin(index + 1) - 1 };
    (0..count).map(|index| (begin(index), end(index))).collect()
}

/// Groups of sources that overlap directly or through other sources.
fn groups(mut sources: Vec<Source>) -> Vec<Vec<Source>> {
    sources.sort_by_key(|source| source.extent.ts.0);
    let mut group_of: Vec<usize> = (0..sources.len()).collect();
    let mut open: Vec<usize> = Vec::new();
    for next in 0..sources.len() {
        open.retain(|index| sources[*index].extent.ts.1 >= sources[next].extent.ts.0);
        for index in &open {
            if sources[*index].overlaps(&sources[next]) {
                let (old, new) = (group_of[*index], group_of[next]);
                group_of[..=next].iter_mut().filter(|group| **group == old).for_each(|group| *group = new);
            }
        }
        open.push(next);
    }
    let mut groups: std::collections::BTreeMap<usize, Vec<Source>> = Default::default();
    for (source, group) in sources.into_iter().zip(group_of) {
        groups.entry(group).or_default().push(source);
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(rank: u32, series: (u32, u32), ts: (i64, i64)) -> Source {
        let kind = Kind::Chunk(Arc::new(Chunk::new(0)));
        Source { rank, extent: Extent { series, ts }, rows: 1, kind, hidden: None, share: (0, 1, 1) }
    }

    #[test]
    fn only_sources_that_may_share_a_row_are_in_a_group() {
        let found = |sources: &[Source]| {
            let groups = groups(sources.to_vec()).into_iter();
            let mut ranks: Vec<Vec<u32>> =
                groups.map(|group| group.iter().map(|source| source.rank).collect()).collect();
            ranks.iter_mut().for_each(|ranks| ranks.sort_unstable());
            ranks.sort();
            ranks
        };
        let [a, b, c, d] = [
            source(0, (0, 9), (0, 10)),
            source(1, (0, 9), (10, 15)),
            source(2, (10, 19), (0, 15)),
            source(3, (9, 10), (15, 20)),
        ];
        assert_eq!(found(&[a.clone(), b.clone(), c.clone()]), [vec![0, 1], vec![2]]);
        assert_eq!(found(&[c.clone(), d.clone(), a.clone()]), [vec![0], vec![2, 3]]);
        // The last source joins all others.
        assert_eq!(found(&[a, b, c, d]), [[0, 1, 2, 3]]);
        assert!(found(&[]).is_empty());
    }

    #[test]
    fn ranges_of_series_meet_and_share_what_is_wanted() {
        assert_eq!(cut(None, (10, 29), 4), [(10, 14), (15, 19), (20, 24), (25, 29)]);
        assert_eq!(cut(None, (0, 1), 9), [(0, 0), (1, 1)]);
        assert_eq!(cut(None, (5, u32::MAX), 1), [(5, u32::MAX)]);
        let set: SeriesSet = [1, 10, 11, 12, 500, 900].into_iter().collect();
        assert_eq!(cut(Some(&set), (5, 800), 2), [(5, 11), (12, 800)]);
        assert_eq!(cut(Some(&set), (0, 1000), 3), [(0, 10), (11, 499), (500, 1000)]);
        assert_eq!(cut(Some(&set), (20, 30), 3), [(20, 30)]);
    }
}
