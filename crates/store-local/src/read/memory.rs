//! Rows of one series in the chunks of the memtable.

use std::sync::Arc;

use model::{TimeRange, Timestamp, ValueRef};
use store::{Order, StoreError};

use super::Source;
use crate::chunk::Chunk;
use crate::row::KeyId;

/// Walks the chunks' rows of one series by ts; of several rows at one ts it shows the merged fields.
pub(super) struct MemorySource {
    chunks: Vec<Arc<Chunk>>,
    /// Ts, chunk and row: ascending, and the last is the row at hand.
    places: Vec<(i64, u32, u32)>,
    order: Order,
    keys: Vec<Option<KeyId>>,
    values: Vec<Option<Place>>,
    /// How many of `places`, at the end that is read, make the row at hand.
    group: usize,
}

/// Where a value stands: the field in a row, so that nothing is copied.
#[derive(Clone, Copy)]
struct Place {
    chunk: u32,
    row: u32,
    field: u32,
}

impl MemorySource {
    pub(super) fn new(
        chunks: &[Arc<Chunk>],
        series: u32,
        keys: &[Option<KeyId>],
        range: TimeRange,
        order: Order,
    ) -> Self {
        let mut places = Vec::new();
        for (number, chunk) in chunks.iter().enumerate() {
            let rows = chunk.rows_of(series).map(|row| (chunk.ts(row), number as u32, row));
            places.extend(rows.filter(|(ts, ..)| range.contains(Timestamp::from_micros(*ts))));
        }
        places.sort_unstable();
        if order == Order::Ascending {
            places.reverse();
        }
        let mut source = Self {
            chunks: chunks.to_vec(),
            places,
            order,
            keys: keys.to_vec(),
            values: Vec::new(),
            group: 0,
        };
        source.load();
        source
    }

    /// Merges the rows at the next ts, oldest first, so that later writes replace earlier ones.
    fn load(&mut self) {
        self.values.clear();
        self.values.resize(self.keys.len(), None);
        let Some((ts, ..)) = self.places.last() else {
            self.group = 0;
            return;
        };
        self.group = self.places.iter().rev().take_while(|place| place.0 == *ts).count();
        let start = self.places.len() - self.group;
        for index in 0..self.group {
            let (_, chunk, row) = match self.order {
                Order::Ascending => self.places[self.places.len() - 1 - index],
                Order::Descending => self.places[start + index],
            };
            for (field, (key, _)) in self.chunks[chunk as usize].fields(row).enumerate() {
                let place = Place { chunk, row, field: field as u32 };
                let asked = self.keys.iter().zip(&mut self.values).filter(|(asked, _)| **asked == Some(key));
                asked.for_each(|(_, value)| *value = Some(place));
            }
        }
    }
}

impl Source for MemorySource {
    fn ts(&self) -> Option<i64> {
        self.places.last().map(|place| place.0)
    }

    fn value(&self, key: usize) -> Option<ValueRef<'_>> {
        let place = self.values[key]?;
        let (_, value) = self.chunks[place.chunk as usize].fields(place.row).nth(place.field as usize)?;
        Some(value)
    }

    fn advance(&mut self) -> Result<(), StoreError> {
        self.places.truncate(self.places.len() - self.group);
        self.load();
        Ok(())
    }
}
