//! The state of a series that an append needs, in 32 bytes. With a million series each access is a cache miss, and an
//! append must not cause a second one. So the latest value is here as long as the series has one key and its value is a
//! number; all other latest values are in the [`LatestPool`].

use model::{Value, ValueRef};

use crate::chunk::NO_ROW;
use crate::latest::{Latest, LatestPool, Newest};
use crate::row::KeyId;

/// The state of one series. The alignment keeps it within one cache line.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct SeriesState {
    /// The last row of the series, and the open chunk that has it: chunk number << 16 | row.
    head: u64,
    newest_ts: i64,
    /// The newest value, or its index in the pool.
    newest_bits: u64,
    /// [`NO_TABLE`] when the series was dropped, so that appends and reads do not know it.
    pub(crate) table: u32,
    newest_key: u16,
    newest: LatestCache,
}

/// Where the latest values of a series are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LatestCache {
    /// Only in memtable and parts.
    NotCached,
    /// Nowhere: the series never had a row.
    NoRow,
    /// In the [`SeriesState`]: one key, and no text.
    Bool,
    I64,
    F64,
    Pool,
}

/// Whether a series can have older rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// No: it was just created.
    New,
    /// Yes: log, series file or parts have it.
    Before,
}

/// A table number that no table has.
pub(crate) const NO_TABLE: u32 = u32::MAX;

const ROW_BITS: u32 = 16;
const _: () = assert!(crate::part::rows::CHUNKS_MAX <= 1 << ROW_BITS, "a chunk's row numbers fit");

impl SeriesState {
    pub(crate) fn new(table: u32, origin: Origin) -> Self {
        let newest = match origin {
            Origin::New => LatestCache::NoRow,
            Origin::Before => LatestCache::NotCached,
        };
        // Chunks are numbered from 1, so no chunk has this head.
        Self { head: 0, newest_ts: 0, newest_bits: 0, table, newest_key: 0, newest }
    }

    /// Notes that the last row of the series is now `row` of the open chunk with this number. Returns the previous row of
    /// the series in that chunk.
    #[inline]
    pub(crate) fn link(&mut self, chunk: u64, row: u32) -> u32 {
        let head = std::mem::replace(&mut self.head, chunk << ROW_BITS | u64::from(row));
        if head >> ROW_BITS == chunk { head as u32 & ((1 << ROW_BITS) - 1) } else { NO_ROW }
    }

    /// The last row of the series in the open chunk with this number.
    pub(crate) fn head(&self, chunk: u64) -> Option<u32> {
        (self.head >> ROW_BITS == chunk).then_some(self.head as u32 & ((1 << ROW_BITS) - 1))
    }

    /// Takes a row with a single f64.
    #[inline]
    pub(crate) fn update_number(&mut self, id: u32, key: KeyId, ts: i64, value: f64, pool: &mut LatestPool) {
        if self.newest == LatestCache::F64 && u32::from(self.newest_key) == key {
            if ts >= self.newest_ts {
                self.newest_ts = ts;
                self.newest_bits = value.to_bits();
            }
        } else if self.newest != LatestCache::NotCached {
            self.update_single(id, key, ts, ValueRef::F64(value), pool);
        }
    }

    /// Takes a row with a single field.
    pub(crate) fn update_single(
        &mut self,
        id: u32,
        key: KeyId,
        ts: i64,
        value: ValueRef<'_>,
        pool: &mut LatestPool,
    ) {
        let here = self.newest == LatestCache::NoRow || self.is_here() && u32::from(self.newest_key) == key;
        match (Self::bits(key, value), here) {
            (Some((cache, newest_key, bits)), true) => {
                if self.newest == LatestCache::NoRow || ts >= self.newest_ts {
                    (self.newest, self.newest_key, self.newest_ts, self.newest_bits) =
                        (cache, newest_key, ts, bits);
                }
            }
            _ => {
                if let Some(index) = self.move_to_pool(id, pool) {
                    pool.change(index, |latest| latest.update(0, key, ts, value));
                }
            }
        }
    }

    /// Moves the latest values to the pool, unless they are not cached.
    #[inline]
    pub(crate) fn move_to_pool(&mut self, id: u32, pool: &mut LatestPool) -> Option<usize> {
        match self.newest {
            LatestCache::NotCached => return None,
            LatestCache::Pool => return Some(self.newest_bits as usize),
            LatestCache::NoRow | LatestCache::Bool | LatestCache::I64 | LatestCache::F64 => {}
        }
        let mut latest = Latest::new(true);
        if let Some(Newest { key, ts, value }) = self.one() {
            latest.update(0, key, ts, value.as_ref());
        }
        Some(self.put_into_pool(id, latest, pool))
    }

    /// Starts a partial cache, without the values of older rows, unless there is a cache already.
    pub(crate) fn begin_partial(&mut self, id: u32, pool: &mut LatestPool) {
        if self.newest == LatestCache::NotCached {
            self.put_into_pool(id, Latest::new(false), pool);
        }
    }

    /// Adds the values of older rows to the cache that [`begin_partial`](Self::begin_partial) has started, if it still
    /// exists.
    pub(crate) fn complete(&mut self, older: Vec<Newest>, pool: &mut LatestPool) {
        if self.newest != LatestCache::Pool {
            return;
        }
        let index = self.newest_bits as usize;
        pool.change(index, |latest| latest.merge_older(older));
        if let [one] = pool.get(index).entries()
            && let Some((cache, key, bits)) = Self::bits(one.key, one.value.as_ref())
        {
            (self.newest, self.newest_key, self.newest_ts, self.newest_bits) = (cache, key, one.ts, bits);
            pool.remove(index);
        }
    }

    /// Drops the values if one of them has a time in a half-open range. The next read loads them again.
    pub(crate) fn forget_within(&mut self, (start, end): (i64, i64), pool: &mut LatestPool) {
        let is_within = |ts: i64| start <= ts && ts < end;
        let has_any = match self.newest {
            LatestCache::NotCached | LatestCache::NoRow => false,
            LatestCache::Bool | LatestCache::I64 | LatestCache::F64 => is_within(self.newest_ts),
            LatestCache::Pool => {
                pool.get(self.newest_bits as usize).entries().iter().any(|entry| is_within(entry.ts))
            }
        };
        if has_any {
            if self.newest == LatestCache::Pool {
                pool.remove(self.newest_bits as usize);
            }
            self.forget();
        }
    }

    /// Notes that the pool has dropped the values.
    pub(crate) fn forget(&mut self) {
        self.newest = LatestCache::NotCached;
    }

    /// All latest values, sorted by key number; `None` if they are not cached. `one` provides the memory for a single
    /// value.
    pub(crate) fn latest<'a>(
        &self,
        pool: &'a mut LatestPool,
        one: &'a mut Option<Newest>,
    ) -> Option<&'a [Newest]> {
        match self.newest {
            LatestCache::NotCached => None,
            LatestCache::Pool => {
                let index = self.newest_bits as usize;
                pool.change(index, |_| ()); // marks it as used
                let latest = pool.get(index);
                latest.complete.then(|| latest.entries())
            }
            LatestCache::NoRow | LatestCache::Bool | LatestCache::I64 | LatestCache::F64 => {
                *one = self.one();
                Some(one.as_slice())
            }
        }
    }

    fn is_here(&self) -> bool {
        matches!(self.newest, LatestCache::Bool | LatestCache::I64 | LatestCache::F64)
    }

    /// The value that is in this state.
    fn one(&self) -> Option<Newest> {
        let bits = self.newest_bits;
        let value = match self.newest {
            LatestCache::Bool => Value::Bool(bits != 0),
            LatestCache::I64 => Value::I64(bits.cast_signed()),
            LatestCache::F64 => Value::F64(f64::from_bits(bits)),
            LatestCache::NotCached | LatestCache::NoRow | LatestCache::Pool => return None,
        };
        Some(Newest { key: self.newest_key.into(), ts: self.newest_ts, value })
    }

    /// The representation of a value in this state; `None` if it does not fit.
    fn bits(key: KeyId, value: ValueRef<'_>) -> Option<(LatestCache, u16, u64)> {
        let key = u16::try_from(key).ok()?;
        Some(match value {
            ValueRef::Bool(value) => (LatestCache::Bool, key, value.into()),
            ValueRef::I64(value) => (LatestCache::I64, key, value.cast_unsigned()),
            ValueRef::F64(value) => (LatestCache::F64, key, value.to_bits()),
            ValueRef::String(_) | ValueRef::Json(_) => return None,
        })
    }

    fn put_into_pool(&mut self, id: u32, latest: Latest, pool: &mut LatestPool) -> usize {
        let index = pool.insert(id, latest);
        self.newest = LatestCache::Pool;
        self.newest_bits = index as u64;
        index
    }
}

const _: () = assert!(size_of::<SeriesState>() == 32, "two series to a cache line");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Action {
        Number(KeyId, i64, f64),
        Row(i64, Vec<(KeyId, Value)>),
        Evict,
        Load,
    }

    fn action() -> impl Strategy<Value = Action> {
        let key = prop_oneof![4 => Just(0_u32), 2 => Just(1), 1 => Just(70_000)];
        let value = prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i8>().prop_map(|n| Value::I64(n.into())),
            any::<i8>().prop_map(|n| Value::F64(n.into())),
            "[a-z]{0,9}".prop_map(Value::String),
        ];
        let fields = prop::collection::vec((key.clone(), value), 1..3);
        prop_oneof![
            4 => (key, 0..9_i64, any::<i8>()).prop_map(|(key, ts, n)| Action::Number(key, ts, n.into())),
            3 => (0..9_i64, fields).prop_map(|(ts, fields)| Action::Row(ts, fields)),
            1 => Just(Action::Evict),
            1 => Just(Action::Load),
        ]
    }

    proptest! {
        #[test]
        fn the_latest_values_are_the_same_wherever_they_are_kept(
            known_before in any::<bool>(),
            actions in prop::collection::vec(action(), 0..30),
        ) {
            let origin = if known_before { Origin::Before } else { Origin::New };
            let (mut series, mut pool) = (SeriesState::new(3, origin), LatestPool::default());
            let mut expected = Latest::new(true);
            for action in actions {
                match action {
                    Action::Number(key, ts, value) => {
                        series.update_number(7, key, ts, value, &mut pool);
                        expected.update(0, key, ts, ValueRef::F64(value));
                    }
                    Action::Row(ts, fields) if fields.len() == 1 => {
                        let (key, value) = &fields[0];
                        series.update_single(7, *key, ts, value.as_ref(), &mut pool);
                        expected.update(0, *key, ts, value.as_ref());
                    }
                    Action::Row(ts, fields) => {
                        let index = series.move_to_pool(7, &mut pool);
                        for (key, value) in &fields {
                            if let Some(index) = index {
                                pool.change(index, |latest| latest.update(0, *key, ts, value.as_ref()));
                            }
                            expected.update(0, *key, ts, value.as_ref());
                        }
                    }
                    Action::Evict => {
                        if let Some(evicted) = pool.evict() {
                            prop_assert_eq!(evicted, 7);
                            series.forget();
                        }
                    }
                    Action::Load => {
                        series.begin_partial(7, &mut pool);
                        series.complete(expected.entries().to_vec(), &mut pool);
                    }
                }
                let mut one = None;
                if let Some(found) = series.latest(&mut pool, &mut one) {
                    prop_assert_eq!(found, expected.entries());
                }
            }
            series.begin_partial(7, &mut pool);
            series.complete(expected.entries().to_vec(), &mut pool);
            let mut one = None;
            prop_assert_eq!(series.latest(&mut pool, &mut one), Some(expected.entries()));
        }
    }

    #[test]
    fn heads_count_only_in_their_chunk() {
        let mut series = SeriesState::new(0, Origin::New);
        assert_eq!((series.head(1), series.link(1, 65_535), series.link(1, 9)), (None, NO_ROW, 65_535));
        assert_eq!((series.head(1), series.head(2), series.link(2, 0)), (Some(9), None, NO_ROW));
    }
}
