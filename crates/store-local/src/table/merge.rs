//! Merges sources run by run. It takes whole runs where only one source has rows. Where several sources have the same row,
//! it takes all of its writes, and gather.rs chooses field by field.
//!
//! Sources are ranked: every row of a newer source has a later sequence than every row of an older one (manifest.rs,
//! invariant 4), so at one (series, ts) the newest source that has a key decides it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use model::limits::READ_BLOCKS_PER_BATCH_MAX;
use store::{Order, StoreError};

use super::block::{Block, Blocks, Scope};
use super::order::{OrderKey, RowOrder};
use super::plan::{ReadPlan, Source};

/// Rows for one output batch: references to rows of blocks. No column is decoded for it.
#[derive(Default)]
pub(crate) struct MergeSlice {
    pub(crate) blocks: Vec<Arc<Block>>,
    pub(crate) pieces: Vec<Piece>,
    /// The writes of rows that several blocks have: block and row, newest first, row after row.
    pub(crate) writes: Vec<(u32, u32)>,
    pub(crate) rows: usize,
    /// About the bytes of the texts of the blocks.
    bytes: usize,
    /// The number of this slice; the one before had another.
    serial: u64,
}

/// Some of the rows of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Neighbouring rows of a block.
    Rows { block: u32, start: u32, end: u32 },
    /// One row that several blocks have: a range of [`MergeSlice::writes`].
    Same { start: u32, end: u32 },
}

impl MergeSlice {
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.pieces.clear();
        self.writes.clear();
        (self.rows, self.bytes) = (0, 0);
        self.serial += 1;
    }

    /// Whether the slice keeps so many decoded blocks in memory that the batch should end, although it has few rows. In a
    /// walk by time the cursors keep the blocks anyway, as long as they are small.
    pub(super) fn is_wide(&self, plan: &ReadPlan, order: RowOrder) -> bool {
        self.bytes >= plan.core.options.read_batch_bytes()
            || (order == RowOrder::Series && self.blocks.len() >= READ_BLOCKS_PER_BATCH_MAX)
    }

    fn push(&mut self, block: u32, start: u32, end: u32, backward: bool) {
        self.rows += (end - start) as usize;
        if let Some(Piece::Rows { block: last, start: first, end: last_end }) = self.pieces.last_mut()
            && *last == block
        {
            match backward {
                false if *last_end == start => return *last_end = end,
                true if *first == end => return *first = start,
                _ => {}
            }
        }
        self.pieces.push(Piece::Rows { block, start, end });
    }
}

/// A walk over one source.
struct Cursor {
    source: Source,
    scope: Scope,
    blocks: Option<Blocks>,
    block: Option<Arc<Block>>,
    /// About the bytes of the texts of the block.
    text_bytes: usize,
    /// The index of the current span in the block.
    span: usize,
    /// The rows of the current span that are left.
    start: u32,
    end: u32,
    /// The serial of a slice, and the index of the block among the blocks of that slice.
    in_slice: (u64, u32),
}

impl Cursor {
    /// Opens the next block. `false` when there is none.
    fn load(&mut self, plan: &ReadPlan) -> Result<bool, StoreError> {
        let blocks = match &mut self.blocks {
            Some(blocks) => blocks,
            none => none.insert(self.source.open(&plan.core, &self.scope)?),
        };
        self.block = blocks.next(&plan.core, &self.scope, plan.slots.len())?.map(Arc::new);
        self.in_slice = (u64::MAX, 0);
        let Some(block) = &self.block else {
            // A read of many parts passes most of them long before its end.
            self.blocks = None;
            return Ok(false);
        };
        self.text_bytes = block.text_bytes(&plan.slots);
        self.span = match self.scope.order {
            Order::Ascending => 0,
            Order::Descending => block.spans.len() - 1,
        };
        (self.start, self.end) = (block.spans[self.span].start, block.spans[self.span].end);
        Ok(true)
    }

    fn is_loaded(&self) -> bool {
        self.block.is_some()
    }

    /// The current row.
    fn row(&self) -> u32 {
        match self.scope.order {
            Order::Ascending => self.start,
            Order::Descending => self.end - 1,
        }
    }

    fn key(&self, order: RowOrder) -> Result<OrderKey, StoreError> {
        let block = self.block.as_ref().expect("BUG: only loaded cursors have a row");
        Ok(order.key(block.spans[self.span].series, block.times()?[self.row() as usize]))
    }

    fn number_in(&mut self, slice: &mut MergeSlice) -> u32 {
        if self.in_slice.0 != slice.serial
            && let Some(block) = &self.block
        {
            self.in_slice = (slice.serial, slice.blocks.len() as u32);
            slice.blocks.push(block.clone());
            slice.bytes += self.text_bytes;
        }
        self.in_slice.1
    }

    /// Adds rows before `bound` to the slice, until it has `rows_max` or the block ends.
    fn take(
        &mut self,
        order: RowOrder,
        bound: Option<OrderKey>,
        rows_max: usize,
        slice: &mut MergeSlice,
    ) -> Result<(), StoreError> {
        let block = self.number_in(slice);
        while let Some(loaded) = &self.block
            && slice.rows < rows_max
        {
            let series = loaded.spans[self.span].series;
            let (start, end) = (self.start, self.end);
            let before = match bound {
                None => end - start,
                Some(bound) => {
                    let times = &loaded.times()?[start as usize..end as usize];
                    let is_before = |ts: &i64| order.key(series, *ts) < bound;
                    // Mostly sources do not overlap in time, and the farthest row shows that all are before the bound.
                    let count = match order.is_backward() {
                        false if times.last().is_some_and(is_before) => times.len(),
                        false => times.partition_point(is_before),
                        true if times.first().is_some_and(is_before) => times.len(),
                        true => times.len() - times.partition_point(|ts| !is_before(ts)),
                    };
                    count as u32
                }
            };
            let count = before.min((rows_max - slice.rows).min(u32::MAX as usize) as u32);
            if count == 0 {
                return Ok(());
            }
            match self.scope.order {
                Order::Ascending => slice.push(block, start, start + count, false),
                Order::Descending => slice.push(block, end - count, end, true),
            }
            self.pass(count);
        }
        Ok(())
    }

    /// Passes rows of the current span. After the last row of the block no block is loaded.
    fn pass(&mut self, count: u32) {
        match self.scope.order {
            Order::Ascending => self.start += count,
            Order::Descending => self.end -= count,
        }
        if self.start < self.end {
            return;
        }
        let Some(block) = &self.block else { return };
        let next = match self.scope.order {
            Order::Ascending => Some(self.span + 1).filter(|span| *span < block.spans.len()),
            Order::Descending => self.span.checked_sub(1),
        };
        match next {
            Some(span) => {
                self.span = span;
                (self.start, self.end) = (block.spans[span].start, block.spans[span].end);
            }
            None => self.block = None,
        }
    }
}

/// A walk over several sources at once.
pub(crate) struct Merge {
    order: RowOrder,
    cursors: Vec<Cursor>,
    /// For each cursor the key of its row, or a key before it while no block is loaded. At one key the newest source is
    /// first.
    heap: BinaryHeap<Reverse<(OrderKey, Reverse<u32>, usize)>>,
    same: Vec<usize>,
}

impl Merge {
    pub(crate) fn new(order: RowOrder, sources: impl IntoIterator<Item = (Source, Scope)>) -> Self {
        let mut merge = Self { order, cursors: Vec::new(), heap: BinaryHeap::new(), same: Vec::new() };
        for (source, scope) in sources {
            let extent = source.extent;
            let series = extent.series.0.max(scope.series.bounds.0);
            let ts = match order {
                RowOrder::Time(Order::Descending) => extent.ts.1,
                _ => extent.ts.0,
            };
            let first = match order {
                // The first series may start at any time.
                RowOrder::Series => (series.into(), i64::MIN),
                RowOrder::Time(_) => order.key(series, ts),
            };
            merge.heap.push(Reverse((first, Reverse(source.rank), merge.cursors.len())));
            merge.cursors.push(Cursor {
                source,
                scope,
                blocks: None,
                block: None,
                text_bytes: 0,
                span: 0,
                start: 0,
                end: 0,
                in_slice: (u64::MAX, 0),
            });
        }
        merge
    }

    /// Adds rows until the slice has `rows_max`; `false` after the last row.
    pub(crate) fn fill(
        &mut self,
        plan: &ReadPlan,
        rows_max: usize,
        slice: &mut MergeSlice,
    ) -> Result<bool, StoreError> {
        self.release_columns(plan);
        let order = self.order;
        if let [only] = self.cursors.as_mut_slice() {
            while slice.rows < rows_max && !slice.is_wide(plan, order) {
                if !only.is_loaded() {
                    // A slice that is full enough ends with its block, which saves a copy.
                    if slice.rows > rows_max / 2 {
                        return Ok(true);
                    }
                    if !only.load(plan)? {
                        return Ok(false);
                    }
                }
                only.take(order, None, rows_max, slice)?;
            }
            return Ok(true);
        }
        while slice.rows < rows_max && !slice.is_wide(plan, order) {
            let Some(Reverse((key, _, first))) = self.heap.pop() else { return Ok(false) };
            if !self.cursors[first].is_loaded() {
                self.load(plan, first)?;
                continue;
            }
            self.same.clear();
            self.same.push(first);
            while let Some(Reverse((next, _, other))) = self.heap.peek().copied()
                && next == key
            {
                self.heap.pop();
                match self.cursors[other].is_loaded() {
                    true => self.same.push(other),
                    false => self.load(plan, other)?,
                }
            }
            match self.same.len() {
                1 => {
                    let bound = self.heap.peek().map(|Reverse((next, ..))| *next);
                    self.cursors[first].take(self.order, bound, rows_max, slice)?;
                }
                _ => self.take_same(slice),
            }
            for index in std::mem::take(&mut self.same) {
                let cursor = &self.cursors[index];
                let next = if cursor.is_loaded() { cursor.key(self.order)? } else { key };
                self.heap.push(Reverse((next, Reverse(cursor.source.rank), index)));
            }
        }
        Ok(true)
    }

    /// Drops the columns that earlier slices have decoded, if they are many bytes. The next slice decodes again what it needs.
    fn release_columns(&mut self, plan: &ReadPlan) {
        let decoded =
            self.cursors.iter().filter_map(|cursor| cursor.block.as_deref()).map(Block::decoded_bytes);
        if decoded.sum::<usize>() <= plan.core.options.read_kept_bytes() {
            return;
        }
        for block in self.cursors.iter_mut().filter_map(|cursor| cursor.block.as_mut()) {
            *block = Arc::new(block.without_columns());
        }
    }

    fn load(&mut self, plan: &ReadPlan, index: usize) -> Result<(), StoreError> {
        let cursor = &mut self.cursors[index];
        if cursor.load(plan)? {
            self.heap.push(Reverse((cursor.key(self.order)?, Reverse(cursor.source.rank), index)));
        }
        Ok(())
    }

    /// Adds the row that is the current row of several cursors.
    fn take_same(&mut self, slice: &mut MergeSlice) {
        let cursors = &mut self.cursors;
        self.same.sort_unstable_by_key(|index| Reverse(cursors[*index].source.rank));
        let start = slice.writes.len() as u32;
        for index in &self.same {
            let cursor = &mut cursors[*index];
            let write = (cursor.number_in(slice), cursor.row());
            slice.writes.push(write);
            cursor.pass(1);
        }
        slice.pieces.push(Piece::Same { start, end: slice.writes.len() as u32 });
        slice.rows += 1;
    }
}
