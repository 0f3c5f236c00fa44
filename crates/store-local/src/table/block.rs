//! Blocks: sorted rows of one source. A column of a block is decoded when a read needs it.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, ArrayRef};
use model::TimeRange;
use store::{Order, SeriesSet, StoreError};

use crate::array_cache::{ArrayKey, Cached, Keep, SeriesRun};
use crate::catalog::Slot;
use crate::chunk::{Chunk, SortedRows};
use crate::core::Core;
use crate::part::Part;
use crate::part::columns::PartColumns;
use crate::part::page::Page;
use crate::tombstone::{Hidden, Mask, Tombstone, hidden_in, hide_rows, masked};

/// The number of pages of a part from which on a read counts as a scan, whose arrays do not evict others.
const PAGES_KEPT_MAX: usize = 64;
/// Series up to which their rows are slice out of an unsorted copy instead of sorting it.
const SERIES_SELECTED_MAX: u64 = 16;

/// A set of wanted series.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The smallest and the largest number.
    pub(crate) bounds: (u32, u32),
    /// The wanted ones within the bounds; all when `None`.
    pub(crate) set: Option<Arc<SeriesSet>>,
}

impl Series {
    pub(crate) fn one(series: u32) -> Self {
        Self { bounds: (series, series), set: None }
    }

    /// Whether all series between two numbers are wanted.
    fn has_all(&self, series: (u32, u32)) -> bool {
        self.bounds.0 <= series.0
            && series.1 <= self.bounds.1
            && self.set.as_ref().is_none_or(|set| set.contains_range(series.0..=series.1))
    }

    /// Whether any series between two numbers is wanted.
    pub(crate) fn has_any(&self, series: (u32, u32)) -> bool {
        let (first, last) = (series.0.max(self.bounds.0), series.1.min(self.bounds.1));
        first <= last && self.set.as_ref().is_none_or(|set| set.range(first..=last).next().is_some())
    }

    fn has(&self, series: u32) -> bool {
        self.bounds.0 <= series
            && series <= self.bounds.1
            && self.set.as_ref().is_none_or(|set| set.contains(series))
    }
}

/// The part of a source that a read wants.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// The table of all wanted series.
    pub(crate) table: u32,
    pub(crate) series: Series,
    pub(crate) range: TimeRange,
    pub(crate) order: Order,
    /// Whether the read needs the series of the rows.
    pub(crate) runs: bool,
}

/// Successive rows of one series, or of any series where the read does not need them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowSpan {
    pub(crate) series: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl RowSpan {
    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
}

/// Rows of one source, and the wanted ones among them.
pub(crate) struct Block {
    /// Never empty.
    pub(crate) spans: Vec<RowSpan>,
    /// The series of all rows; empty when the read does not need them.
    pub(crate) runs: Arc<[SeriesRun]>,
    ts: OnceLock<ArrayRef>,
    /// By slot; `None` when the source does not have the column.
    columns: Box<[OnceLock<Option<ArrayRef>>]>,
    /// The values that tombstones hide.
    masks: Vec<Mask>,
    content: Content,
}

enum Content {
    Page(Arc<PartColumns>, u32),
    Rows(Arc<Chunk>, Arc<SortedRows>),
}

impl Block {
    fn new(spans: Vec<RowSpan>, runs: Arc<[SeriesRun]>, slots: usize, content: Content) -> Self {
        let columns = (0..slots).map(|_| OnceLock::new()).collect();
        Self { spans, runs, ts: OnceLock::new(), columns, masks: Vec::new(), content }
    }

    /// The time column of all rows.
    pub(crate) fn ts(&self) -> Result<&ArrayRef, StoreError> {
        if let Some(array) = self.ts.get() {
            return Ok(array);
        }
        let array = match &self.content {
            Content::Page(columns, page) => columns.array(*page, columns.reader.ts)?,
            Content::Rows(_, rows) => rows.ts_array(),
        };
        Ok(self.ts.get_or_init(|| array))
    }

    /// The times of all rows.
    pub(crate) fn times(&self) -> Result<&[i64], StoreError> {
        Ok(self.ts()?.as_primitive::<TimestampMicrosecondType>().values())
    }

    /// About the bytes of the texts in some slots, of all rows.
    pub(crate) fn text_bytes(&self, slots: &[Slot]) -> usize {
        match &self.content {
            Content::Page(columns, page) => columns.text_bytes(*page, slots),
            Content::Rows(chunk, rows) => chunk.row_bytes() * rows.len(),
        }
    }

    /// Bytes of the columns that are decoded. A column that the cache has too counts.
    pub(crate) fn decoded_bytes(&self) -> usize {
        let decoded = self.columns.iter().filter_map(|column| column.get()?.as_ref());
        decoded.map(|array| array.get_array_memory_size()).sum()
    }

    /// The same rows without decoded columns. Its source continues with the next block, so it begins to decode this one anew.
    pub(crate) fn without_columns(&self) -> Self {
        let content = match &self.content {
            Content::Page(columns, page) => {
                columns.release();
                Content::Page(columns.clone(), *page)
            }
            Content::Rows(chunk, rows) => Content::Rows(chunk.clone(), rows.clone()),
        };
        let block = Self::new(self.spans.clone(), self.runs.clone(), self.columns.len(), content);
        Self { ts: self.ts.clone(), masks: self.masks.clone(), ..block }
    }

    /// Leaves out the rows that tombstones hide, and notes the hidden values. The block must have runs.
    fn hide(&mut self, tombstones: &[Arc<Tombstone>]) -> Result<(), StoreError> {
        let (spans, mut masks) = (std::mem::take(&mut self.spans), Vec::new());
        let times = self.times()?;
        let left = spans.into_iter().flat_map(|RowSpan { series, start, end }| {
            let left = hide_rows(series, start..end, times, tombstones, &mut masks);
            left.into_iter().map(move |rows| RowSpan { series, start: rows.start, end: rows.end })
        });
        let spans = left.collect();
        (self.spans, self.masks) = (spans, masks);
        Ok(())
    }

    /// The column in a slot, of all rows of the table that is read. Hidden values are null.
    pub(crate) fn column(
        &self,
        core: &Core,
        slots: &[Slot],
        slot: usize,
    ) -> Result<Option<&ArrayRef>, StoreError> {
        if let Some(column) = self.columns[slot].get() {
            return Ok(column.as_ref());
        }
        match &self.content {
            Content::Page(columns, page) => {
                let rows = self.spans[0].start..self.spans[self.spans.len() - 1].end;
                let array = columns.field(*page, &slots[slot], rows)?;
                let array = array.map(|array| masked(array, slots[slot].key, &self.masks));
                Ok(self.columns[slot].get_or_init(|| array).as_ref())
            }
            Content::Rows(chunk, rows) => {
                self.fill_from_chunk(core, slots, chunk, rows);
                Ok(self.columns[slot].get().and_then(Option::as_ref))
            }
        }
    }

    /// Decodes all columns at once, because a row can be decoded only from its beginning.
    fn fill_from_chunk(&self, core: &Core, slots: &[Slot], chunk: &Arc<Chunk>, rows: &Arc<SortedRows>) {
        let shared = chunk.number != 0 && rows.len() == chunk.sorted().len();
        let key =
            |slot: &Slot| ArrayKey::Chunk { chunk: chunk.number, key: slot.key, field_type: slot.field_type };
        let mut missing = Vec::new();
        for (index, slot) in slots.iter().enumerate() {
            match shared.then(|| core.arrays.get(&key(slot))).flatten() {
                Some(Cached::Array(array)) => {
                    drop(self.columns[index].set(Some(masked(array, slot.key, &self.masks))));
                }
                _ => missing.push(index),
            }
        }
        if missing.is_empty() {
            return;
        }
        let wanted: Vec<_> = missing.iter().map(|slot| (slots[*slot].key, slots[*slot].field_type)).collect();
        for (index, array) in missing.into_iter().zip(chunk.columns(rows, &wanted)) {
            if shared {
                core.arrays.put(key(&slots[index]), Cached::Array(array.clone()), Keep::Always);
            }
            let _ = self.columns[index].set(Some(masked(array, slots[index].key, &self.masks)));
        }
    }
}

/// The blocks of a source, in the order of the scope.
pub(crate) struct Blocks {
    kind: Kind,
    hidden: Hidden,
}

enum Kind {
    Part { columns: Arc<PartColumns>, pages: VecDeque<u32> },
    Chunk(ChunkBlocks),
}

/// The blocks of a chunk.
struct ChunkBlocks {
    chunk: Arc<Chunk>,
    /// The wanted rows. The first call finds them.
    found: Option<FoundRows>,
}

/// The wanted rows of a chunk.
struct FoundRows {
    rows: Arc<SortedRows>,
    /// Their spans for each block.
    pieces: VecDeque<Vec<RowSpan>>,
    /// Whether one block has all of them.
    is_whole: bool,
}

impl Blocks {
    /// The blocks of a part. `share` is a share `(from, to, of)` of its pages: from `from / of` to `to / of`.
    pub(crate) fn of_part(
        core: &Core,
        part: &Part,
        scope: &Scope,
        share: (usize, usize, usize),
    ) -> Result<Self, StoreError> {
        let reader = core.part_cache.reader(core.disk.as_ref(), part)?;
        let all = {
            let series = core.series.read();
            reader.pages_of(scope.table, scope.series.bounds, |id| series.table(id))
        };
        let page = |nth: usize| all.start + (all.len() * nth / share.2) as u32;
        let range = page(share.0)..page(share.1);
        let wanted = |page: &u32| {
            let page = &reader.pages[*page as usize];
            page.overlaps(&scope.range) && scope.series.has_any(page.series)
        };
        let pages: VecDeque<u32> = range.clone().filter(wanted).collect();
        let keep = if pages.len() > PAGES_KEPT_MAX { Keep::IfRoom } else { Keep::Always };
        // Reads pages ahead where most of them will be used.
        let dense = scope.order == Order::Ascending && pages.len() * 2 > range.len();
        let ahead = if dense { range } else { 0..0 };
        let columns = PartColumns::new(part.info.id, reader, core.arrays.clone(), keep, ahead);
        Ok(Self { kind: Kind::Part { columns: Arc::new(columns), pages }, hidden: None })
    }

    /// The blocks of a chunk: one, or several if it is large.
    pub(crate) fn of_chunk(chunk: &Arc<Chunk>) -> Self {
        Self { kind: Kind::Chunk(ChunkBlocks { chunk: chunk.clone(), found: None }), hidden: None }
    }

    /// The same blocks without what these tombstones hide.
    pub(crate) fn without(self, hidden: &Hidden) -> Self {
        Self { hidden: hidden.clone(), ..self }
    }

    /// The next block that has a wanted row.
    pub(crate) fn next(
        &mut self,
        core: &Core,
        scope: &Scope,
        slots: usize,
    ) -> Result<Option<Block>, StoreError> {
        loop {
            let (block, hidden) = match &mut self.kind {
                Kind::Chunk(blocks) => {
                    let Some(block) = blocks.next(core, scope, slots) else { return Ok(None) };
                    (Some(block), self.hidden.clone())
                }
                Kind::Part { columns, pages } => {
                    let page = match scope.order {
                        Order::Ascending => pages.pop_front(),
                        Order::Descending => pages.pop_back(),
                    };
                    let Some(page) = page else { return Ok(None) };
                    let of_page = self.hidden.as_ref();
                    let extent = columns.reader.pages[page as usize].extent();
                    let hidden = of_page.and_then(|all| hidden_in(all, 0, &extent));
                    (part_block(columns, page, scope, slots, hidden.is_some())?, hidden)
                }
            };
            let Some(mut block) = block else { continue };
            if let Some(hidden) = hidden {
                block.hide(&hidden)?;
            }
            if !block.spans.is_empty() {
                return Ok(Some(block));
            }
        }
    }
}

fn part_block(
    columns: &Arc<PartColumns>,
    number: u32,
    scope: &Scope,
    slots: usize,
    needs_runs: bool,
) -> Result<Option<Block>, StoreError> {
    let page: &Page = &columns.reader.pages[number as usize];
    let all_times = page.is_within(&scope.range);
    let content = Content::Page(columns.clone(), number);
    if all_times && !scope.runs && !needs_runs && scope.series.has_all(page.series) {
        let span = RowSpan { series: page.series.0, start: 0, end: page.rows };
        return Ok(Some(Block::new(vec![span], Arc::default(), slots, content)));
    }
    let runs = columns.runs(number)?;
    let spans = match columns.may_mix_tables() {
        // Series of other tables are between those of this one, which ascend.
        true if !runs.is_sorted_by_key(|run| run.series) => spans_one_by_one(&runs, &scope.series),
        _ => spans(&runs, &scope.series),
    };
    let mut block = Block::new(spans, runs, slots, content);
    if !all_times {
        let mut spans = std::mem::take(&mut block.spans);
        restrict(&mut spans, block.times()?, &scope.range);
        block.spans = spans;
    }
    Ok(Some(block).filter(|block| !block.spans.is_empty()))
}

impl ChunkBlocks {
    fn next(&mut self, core: &Core, scope: &Scope, slots: usize) -> Option<Block> {
        let Self { chunk, found } = self;
        let FoundRows { rows, pieces, is_whole } =
            found.get_or_insert_with(|| wanted_rows(core, chunk, scope));
        let spans = match scope.order {
            Order::Ascending => pieces.pop_front(),
            Order::Descending => pieces.pop_back(),
        }?;
        if *is_whole {
            let content = Content::Rows(chunk.clone(), rows.clone());
            return Some(Block::new(spans, rows.runs.clone(), slots, content));
        }
        let piece = Arc::new(sorted_part(chunk, rows, &spans));
        let spans = (0..piece.runs.len()).map(|run| span(&piece.runs, run)).collect();
        Some(Block::new(spans, piece.runs.clone(), slots, Content::Rows(chunk.clone(), piece)))
    }
}

/// Sorts the rows of some spans of sorted rows.
fn sorted_part(chunk: &Chunk, rows: &SortedRows, spans: &[RowSpan]) -> SortedRows {
    chunk.sort(spans.iter().flat_map(|span| rows.chunk_rows(span.start..span.end)).copied())
}

fn wanted_rows(core: &Core, chunk: &Chunk, scope: &Scope) -> FoundRows {
    let few = match &scope.series {
        Series { bounds, set: None } => u64::from(bounds.1) - u64::from(bounds.0) < SERIES_SELECTED_MAX,
        Series { set: Some(set), .. } => set.len() <= SERIES_SELECTED_MAX,
    };
    let inside = |ts: i64| scope.range.start.micros() <= ts && ts < scope.range.end.micros();
    let all_times = chunk.extent().is_some_and(|extent| inside(extent.ts.0) && inside(extent.ts.1));
    // If all times are wanted, this saves the access to them.
    let wanted_spans = |rows: &SortedRows| {
        let mut spans = spans(&rows.runs, &scope.series);
        if !all_times {
            restrict(&mut spans, &rows.ts, &scope.range);
        }
        spans
    };
    // A chunk with a number stays, so it pays to sort it once.
    let mut rows = if few && chunk.number == 0 {
        let wanted = |row: &u32| scope.series.has(chunk.series(*row)) && inside(chunk.ts(*row));
        Arc::new(chunk.sort((0..chunk.len() as u32).filter(wanted)))
    } else {
        chunk.sorted().clone()
    };
    let mut spans = wanted_spans(&rows);
    let count = spans.iter().map(RowSpan::len).sum::<usize>();
    let row_bytes = chunk.row_bytes();
    if count * row_bytes > core.options.chunk_whole_bytes() {
        let rows_max = (core.options.text_block_bytes() / row_bytes.max(1)).max(1);
        return FoundRows { rows, pieces: cut(spans, rows_max), is_whole: false };
    }
    if few && chunk.number != 0 && count > 0 && !chunk.pays_whole(count) {
        rows = Arc::new(sorted_part(chunk, &rows, &spans));
        spans = wanted_spans(&rows);
    }
    let pieces = if spans.is_empty() { VecDeque::new() } else { VecDeque::from([spans]) };
    FoundRows { rows, pieces, is_whole: true }
}

/// Divides spans into pieces of at most `rows_max` rows.
fn cut(spans: Vec<RowSpan>, rows_max: usize) -> VecDeque<Vec<RowSpan>> {
    let mut pieces = VecDeque::new();
    let (mut piece, mut left) = (Vec::new(), rows_max);
    for mut span in spans {
        while span.len() > 0 {
            let end = span.end.min(span.start.saturating_add(u32::try_from(left).unwrap_or(u32::MAX)));
            let part = RowSpan { end, ..span };
            (span.start, left) = (end, left - part.len());
            piece.push(part);
            if left == 0 {
                pieces.push_back(std::mem::take(&mut piece));
                left = rows_max;
            }
        }
    }
    pieces.extend(Some(piece).filter(|piece| !piece.is_empty()));
    pieces
}

fn span(runs: &[SeriesRun], index: usize) -> RowSpan {
    let start = index.checked_sub(1).map_or(0, |before| runs[before].end);
    RowSpan { series: runs[index].series, start, end: runs[index].end }
}

/// The runs of the wanted series, which may be in any order.
fn spans_one_by_one(runs: &[SeriesRun], series: &Series) -> Vec<RowSpan> {
    let wanted = (0..runs.len()).filter(|index| series.has(runs[*index].series));
    wanted.map(|index| span(runs, index)).collect()
}

/// The runs of the wanted series, which ascend. Of thousands of runs a single one may be wanted, so this does not visit all
/// of them.
fn spans(runs: &[SeriesRun], series: &Series) -> Vec<RowSpan> {
    let span = |index: usize| span(runs, index);
    let first = runs.partition_point(|run| run.series < series.bounds.0);
    let end = runs.partition_point(|run| run.series <= series.bounds.1).max(first);
    let Some(set) = &series.set else { return (first..end).map(span).collect() };
    if first == end {
        return Vec::new();
    }
    // Few wanted series: search each among the runs. Otherwise: look up each run in the set.
    if set.len() < (end - first) as u64 / 8 {
        let wanted = set.range(runs[first].series..=runs[end - 1].series);
        let find = |series: u32| runs.binary_search_by_key(&series, |run| run.series).ok();
        return wanted.filter_map(find).map(span).collect();
    }
    (first..end).filter(|index| set.contains(runs[*index].series)).map(span).collect()
}

/// Reduces the spans to the rows in a range of time. Each span is sorted by time.
fn restrict(spans: &mut Vec<RowSpan>, times: &[i64], range: &TimeRange) {
    let (start, end) = (range.start.micros(), range.end.micros());
    spans.retain_mut(|span| {
        let of_span = &times[span.start as usize..span.end as usize];
        let first = of_span.partition_point(|ts| *ts < start);
        let last = first + of_span[first..].partition_point(|ts| *ts < end);
        (span.start, span.end) = (span.start + first as u32, span.start + last as u32);
        span.start < span.end
    });
}
