//! The newest value of each key of one series. They are in memory while the series is active.
//!
//! The cache of a new series is complete from the beginning. Otherwise it starts partial: from that moment appends keep it
//! up to date, and a read merges the older values of memtable and parts into it. A value replaces one with the same or an
//! earlier ts, so of two values at one ts the later write stays.

use model::{Timestamp, Value, ValueRef};
use slab::Slab;

use crate::row::KeyId;

/// The newest values of one series.
#[derive(Debug, Default)]
pub(crate) struct Latest {
    /// Sorted by key number.
    entries: Vec<Newest>,
    text_bytes: usize,
    /// Whether the values of older rows are merged in.
    pub(crate) complete: bool,
    /// Whether a caller has used it since the last search for an entry to evict.
    pub(crate) touched: bool,
}

/// The newest value of one key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Newest {
    pub(crate) key: KeyId,
    pub(crate) ts: i64,
    pub(crate) value: Value,
}

impl Latest {
    pub(crate) fn new(complete: bool) -> Self {
        Self { complete, ..Self::default() }
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.entries.capacity() * size_of::<Newest>() + self.text_bytes
    }

    pub(crate) fn entries(&self) -> &[Newest] {
        &self.entries
    }

    /// Takes a value that is a later write than all present ones. `hint` is the expected index of the key. Returns the
    /// probable index of the next key of the same message.
    #[inline]
    pub(crate) fn update(&mut self, hint: usize, key: KeyId, ts: i64, value: ValueRef<'_>) -> usize {
        let index = match self.entries.get(hint) {
            Some(entry) if entry.key == key => hint,
            _ => match self.entries.binary_search_by_key(&key, |entry| entry.key) {
                Ok(index) => index,
                Err(index) => {
                    self.insert(index, Newest { key, ts, value: value.to_owned() });
                    return index + 1;
                }
            },
        };
        let entry = &mut self.entries[index];
        if ts >= entry.ts {
            entry.ts = ts;
            assign(&mut entry.value, value, &mut self.text_bytes);
        }
        index + 1
    }

    /// Takes values of rows from before the cache started. At the same ts the present value is the later write.
    pub(crate) fn merge_older(&mut self, older: Vec<Newest>) {
        for old in older {
            match self.entries.binary_search_by_key(&old.key, |entry| entry.key) {
                Ok(index) if old.ts > self.entries[index].ts => {
                    self.text_bytes -= text_bytes(&self.entries[index].value);
                    self.text_bytes += text_bytes(&old.value);
                    self.entries[index] = old;
                }
                Ok(_) => {}
                Err(index) => self.insert(index, old),
            }
        }
        self.complete = true;
    }

    fn insert(&mut self, index: usize, newest: Newest) {
        self.text_bytes += text_bytes(&newest.value);
        if self.entries.len() == self.entries.capacity() {
            // There may be a million caches, most of them with a few keys that all arrive with the first row.
            self.entries.reserve_exact((self.entries.len() / 2).max(1));
        }
        self.entries.insert(index, newest);
    }
}

fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) | Value::Json(text) => text.capacity(),
        Value::Bool(_) | Value::I64(_) | Value::F64(_) => 0,
    }
}

/// Assigns a value. A text reuses the memory of the old text, unless that is far too large.
#[inline]
fn assign(target: &mut Value, value: ValueRef<'_>, bytes: &mut usize) {
    match (&mut *target, value) {
        (Value::String(old), ValueRef::String(new)) | (Value::Json(old), ValueRef::Json(new))
            if old.capacity() <= 2 * new.len() + 64 =>
        {
            *bytes -= old.capacity();
            old.clear();
            old.push_str(new);
            *bytes += old.capacity();
        }
        (target, value) => {
            *bytes -= text_bytes(target);
            *target = value.to_owned();
            *bytes += text_bytes(target);
        }
    }
}

impl Newest {
    pub(crate) fn ts(&self) -> Timestamp {
        Timestamp::from_micros(self.ts)
    }
}

/// The latest values of the series that do not fit into their [`SeriesState`](crate::series_state).
#[derive(Default)]
pub(crate) struct LatestPool {
    /// Each with the number of its series.
    entries: Slab<(u32, Latest)>,
    bytes: usize,
    /// The index where the next search for an entry to evict begins.
    hand: usize,
}

impl LatestPool {
    pub(crate) fn insert(&mut self, series: u32, latest: Latest) -> usize {
        self.bytes += latest.bytes();
        self.entries.insert((series, latest))
    }

    pub(crate) fn remove(&mut self, index: usize) -> Latest {
        let (_, latest) = self.entries.remove(index);
        self.bytes -= latest.bytes();
        latest
    }

    pub(crate) fn get(&self, index: usize) -> &Latest {
        &self.entries[index].1
    }

    /// Changes an entry, and updates the sum of bytes.
    #[inline]
    pub(crate) fn change<T>(&mut self, index: usize, change: impl FnOnce(&mut Latest) -> T) -> T {
        let latest = &mut self.entries[index].1;
        let before = latest.bytes();
        latest.touched = true;
        let result = change(latest);
        self.bytes = self.bytes + latest.bytes() - before;
        result
    }

    /// Whether the pool exceeds the bounds.
    #[inline]
    pub(crate) fn is_over(&self, series_max: usize, bytes_max: usize) -> bool {
        self.entries.len() > series_max || self.bytes > bytes_max
    }

    /// Removes an entry that was not used lately, and returns its series.
    pub(crate) fn evict(&mut self) -> Option<u32> {
        // The search clears the mark of every entry that it passes, so the second round finds one.
        for _ in 0..2 * self.entries.capacity() {
            self.hand = (self.hand + 1) % self.entries.capacity();
            match self.entries.get_mut(self.hand) {
                Some((_, latest)) if latest.touched => latest.touched = false,
                Some((series, _)) => {
                    let series = *series;
                    self.remove(self.hand);
                    return Some(series);
                }
                None => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(latest: &Latest) -> Vec<(KeyId, i64, Value)> {
        latest.entries().iter().map(|entry| (entry.key, entry.ts, entry.value.clone())).collect()
    }

    #[test]
    fn later_time_wins_and_at_the_same_time_the_later_write() {
        let mut latest = Latest::new(true);
        let hint = latest.update(0, 5, 10, ValueRef::I64(1));
        latest.update(hint, 7, 10, ValueRef::String("a"));
        latest.update(0, 5, 9, ValueRef::I64(2));
        latest.update(9, 7, 10, ValueRef::String("bb"));
        assert_eq!(found(&latest), [(5, 10, Value::I64(1)), (7, 10, Value::String("bb".into()))]);
    }

    #[test]
    fn older_values_fill_in_but_never_replace_at_the_same_time() {
        let mut latest = Latest::new(false);
        latest.update(0, 1, 10, ValueRef::I64(1));
        latest.update(0, 2, 10, ValueRef::I64(2));
        let old = |key, ts| Newest { key, ts, value: Value::Bool(false) };
        latest.merge_older(vec![old(0, 1), old(1, 10), old(2, 11)]);
        let expected = [(0, 1, Value::Bool(false)), (1, 10, Value::I64(1)), (2, 11, Value::Bool(false))];
        assert_eq!(found(&latest), expected);
        assert!(latest.complete);
    }

    #[test]
    fn bytes_are_given_back() {
        let mut latest = Latest::new(true);
        latest.update(0, 1, 1, ValueRef::I64(0));
        let small = latest.bytes();
        latest.update(0, 1, 2, ValueRef::String(&"x".repeat(10_000)));
        assert!(latest.bytes() >= small + 10_000);
        latest.update(0, 1, 3, ValueRef::I64(0));
        assert_eq!(latest.bytes(), small);
    }
}
