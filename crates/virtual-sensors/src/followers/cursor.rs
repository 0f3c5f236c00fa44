//! Up to which row a follower has delivered, and what it must read again.

use kv::Space;
use serde::{Deserialize, Serialize};

use crate::limits::FOLLOWER_RANGES_MAX;

/// Cursors by the name of the sensor, a zero byte and the name of the follower.
pub(crate) const FOLLOWERS: Space = Space::new("virtual_sensor_followers");

/// The cursor of a follower, as the key-value store keeps it. `docs/format/virtual-sensors.md` describes the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// Where the rows go.
    pub(crate) target: String,
    /// Rows up to this time in microseconds were delivered.
    pub(crate) us: i64,
    /// Times before it that have new rows: first and last, sorted, without overlaps.
    pub(crate) again: Vec<(i64, i64)>,
    /// The times of the rows that were appended since the last read began.
    #[serde(skip)]
    touched: Option<(i64, i64)>,
    /// Whether a range was added that is not stored.
    #[serde(skip)]
    pub(crate) is_changed: bool,
}

impl Cursor {
    pub(crate) fn new(target: &str, us: i64) -> Self {
        Self { target: target.to_owned(), us, again: Vec::new(), touched: None, is_changed: true }
    }

    /// The cursor of these bytes; `None` if they are not a cursor.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: numbers and text are JSON")
    }

    /// Rows with times in this range were appended.
    pub(crate) fn appended(&mut self, first_us: i64, last_us: i64) {
        let touched = self.touched.unwrap_or((first_us, last_us));
        self.touched = Some((touched.0.min(first_us), touched.1.max(last_us)));
        if first_us <= self.us {
            self.add(first_us, last_us.min(self.us));
            self.is_changed = true;
        }
    }

    /// The first and the last time to read next.
    pub(crate) fn begin_read(&mut self) -> (i64, i64) {
        self.touched = None;
        self.again.first().copied().unwrap_or((self.us.saturating_add(1), i64::MAX))
    }

    /// The rows of this range, as they were when the read began, were delivered.
    pub(crate) fn delivered(&mut self, from_us: i64, to_us: i64) {
        self.subtract(from_us, to_us);
        if from_us <= self.us.saturating_add(1) {
            self.us = self.us.max(to_us);
        }
        if let Some((first, last)) = self.touched.take()
            && first <= to_us
            && last >= from_us
        {
            self.add(first.max(from_us), last.min(to_us));
            self.is_changed = true;
        }
    }

    fn subtract(&mut self, from_us: i64, to_us: i64) {
        let left = std::mem::take(&mut self.again).into_iter().flat_map(|(first, last)| {
            let before = (first < from_us).then(|| (first, last.min(from_us.saturating_sub(1))));
            let after = (last > to_us).then(|| (first.max(to_us.saturating_add(1)), last));
            [before, after].into_iter().flatten()
        });
        self.again = left.collect();
    }

    fn add(&mut self, first_us: i64, last_us: i64) {
        self.again.push((first_us, last_us));
        self.again.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(self.again.len());
        for (first, last) in self.again.drain(..) {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        while merged.len() > FOLLOWER_RANGES_MAX {
            let gap = |at: &usize| merged[at + 1].0.saturating_sub(merged[*at].1);
            let nearest = (0..merged.len() - 1).min_by_key(gap).unwrap_or(0);
            merged[nearest].1 = merged[nearest + 1].1;
            merged.remove(nearest + 1);
        }
        self.again = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cursor that has delivered the rows up to a time.
    fn cursor(us: i64) -> Cursor {
        Cursor { is_changed: false, ..Cursor::new("a database", us) }
    }

    #[test]
    fn rows_after_the_cursor_are_read_in_their_order() {
        let mut cursor = cursor(10);
        cursor.appended(11, 20);
        assert_eq!(cursor.begin_read(), (11, i64::MAX));
        cursor.delivered(11, 20);
        assert_eq!((cursor.us, cursor.again.len(), cursor.is_changed), (20, 0, false));
    }

    #[test]
    fn a_row_before_the_cursor_is_read_again() {
        let mut cursor = cursor(100);
        cursor.appended(50, 50);
        cursor.appended(70, 120);
        assert!(cursor.is_changed);
        assert_eq!(cursor.again, [(50, 50), (70, 100)]);
        assert_eq!(cursor.begin_read(), (50, 50));
        cursor.delivered(50, 50);
        assert_eq!(cursor.begin_read(), (70, 100));
        // The read had room for some of the rows.
        cursor.delivered(70, 80);
        assert_eq!(cursor.begin_read(), (81, 100));
        cursor.delivered(81, 100);
        assert_eq!(cursor.begin_read(), (101, i64::MAX));
        assert_eq!(cursor.us, 100);
    }

    #[test]
    fn a_row_that_is_appended_while_rows_are_delivered_is_not_lost() {
        let mut cursor = cursor(0);
        assert_eq!(cursor.begin_read(), (1, i64::MAX));
        cursor.appended(5, 7);
        cursor.appended(12, 12);
        cursor.delivered(1, 10);
        assert_eq!((cursor.us, &*cursor.again), (10, &[(5, 10)][..]));
        // Also in a range that is read again.
        assert_eq!(cursor.begin_read(), (5, 10));
        cursor.appended(6, 6);
        cursor.delivered(5, 10);
        assert_eq!(cursor.again, [(6, 6)]);
    }

    #[test]
    fn ranges_that_are_too_many_become_wider() {
        let mut cursor = cursor(1_000_000);
        for at in 0..=FOLLOWER_RANGES_MAX as i64 {
            cursor.appended(at * 100 + at, at * 100 + at);
        }
        assert_eq!(cursor.again.len(), FOLLOWER_RANGES_MAX);
        assert_eq!(cursor.again[0], (0, 101));
    }

    /// The bytes of `docs/format/virtual-sensors.md`.
    #[test]
    fn the_cursor_of_the_documentation_is_read_and_written() {
        let page = include_str!("../../../../docs/format/virtual-sensors.md");
        let start = page.find("{\"target\"").expect("an example");
        let example = page[start..].lines().next().unwrap();
        let cursor = Cursor::decode(example.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(cursor.encode()).unwrap(), example);
        assert_eq!(cursor.again.len(), 1);
        assert_eq!(Cursor::decode(b"{"), None);
    }
}
