//! Merges memtable and parts into one row per ts.
//!
//! Sources are ranked: every row of a newer source has a later sequence than every row of an older one (manifest.rs,
//! invariant 4), so at one ts the newest source that has a key decides it. A part is opened when the walk reaches its
//! time range and let go after it, so that memory follows the overlap of parts and not their number.

use std::ops::ControlFlow;
use std::sync::Arc;

use model::{TimeRange, Timestamp, ValueRef};
use store::{Order, ScannedRow, StoreError};

use super::memory::MemorySource;
use super::{AskedKey, Snapshot, Source};
use crate::core::Core;
use crate::part::read::{KeyColumns, PartSource};
use crate::part::{NEWEST, Part, Rank};

/// The walk over all sources of one series.
pub(super) struct Merge<'a> {
    core: &'a Core,
    series: u32,
    columns: Vec<KeyColumns>,
    range: TimeRange,
    order: Order,
    /// With their rank, newest first; none is at its end.
    active: Vec<(Rank, Box<dyn Source>)>,
    /// Parts that the walk has not reached; the nearest is the last.
    waiting: Vec<Arc<Part>>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(
        core: &'a Core,
        snapshot: Snapshot,
        keys: &[Option<AskedKey>],
        range: TimeRange,
        order: Order,
    ) -> Self {
        let ids: Vec<_> = keys.iter().map(|key| key.as_ref().map(|key| key.id)).collect();
        let columns =
            keys.iter().map(|key| key.as_ref().map(|key| key.columns.clone()).unwrap_or_default()).collect();
        let memory = MemorySource::new(&snapshot.chunks, snapshot.series, &ids, range, order);
        let overlaps =
            |part: &Arc<Part>| part.info.ts.0 < range.end.micros() && range.start.micros() <= part.info.ts.1;
        let mut waiting = snapshot.parts;
        waiting.retain(overlaps);
        match order {
            Order::Ascending => waiting.sort_by_key(|part| std::cmp::Reverse(part.info.ts.0)),
            Order::Descending => waiting.sort_by_key(|part| part.info.ts.1),
        }
        let mut active: Vec<(Rank, Box<dyn Source>)> = Vec::new();
        if memory.ts().is_some() {
            active.push((NEWEST, Box::new(memory)));
        }
        Self { core, series: snapshot.series, columns, range, order, active, waiting }
    }

    /// Visits rows until the limit, a break or the end.
    pub(super) fn run(
        mut self,
        limit: usize,
        visit: &mut dyn FnMut(ScannedRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut visited = 0;
        while let Some(ts) = self.next_ts()? {
            let values: Vec<Option<ValueRef<'_>>> =
                (0..self.columns.len()).map(|key| self.value(ts, key)).collect();
            if values.iter().any(Option::is_some) {
                visited += 1;
                let flow = visit(ScannedRow { ts: Timestamp::from_micros(ts), values: &values });
                if flow.is_break() || visited == limit {
                    return Ok(());
                }
            }
            drop(values);
            self.pass(ts)?;
        }
        Ok(())
    }

    fn value(&self, ts: i64, key: usize) -> Option<ValueRef<'_>> {
        let here = self.active.iter().filter(|(_, source)| source.ts() == Some(ts));
        here.into_iter().find_map(|(_, source)| source.value(key))
    }

    /// The next time at which any source has a row; opens the parts that could have an earlier one.
    fn next_ts(&mut self) -> Result<Option<i64>, StoreError> {
        loop {
            let times = self.active.iter().filter_map(|(_, source)| source.ts());
            let next = match self.order {
                Order::Ascending => times.min(),
                Order::Descending => times.max(),
            };
            let reached = |part: &mut Arc<Part>| match (next, self.order) {
                (None, _) => true,
                (Some(ts), Order::Ascending) => part.info.ts.0 <= ts,
                (Some(ts), Order::Descending) => part.info.ts.1 >= ts,
            };
            let Some(part) = self.waiting.pop_if(reached) else {
                return Ok(next);
            };
            let reader = self.core.part_cache.reader(self.core.disk.as_ref(), &part)?;
            let source = PartSource::new(reader, self.series, &self.columns, self.range, self.order)?;
            if source.ts().is_some() {
                let rank = part.rank();
                let place = self.active.partition_point(|(other, _)| *other > rank);
                self.active.insert(place, (rank, Box::new(source)));
            }
        }
    }

    /// Leaves the row at `ts` behind.
    fn pass(&mut self, ts: i64) -> Result<(), StoreError> {
        for (_, source) in self.active.iter_mut().filter(|(_, source)| source.ts() == Some(ts)) {
            source.advance()?;
        }
        self.active.retain(|(_, source)| source.ts().is_some());
        Ok(())
    }
}
