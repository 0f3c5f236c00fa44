//! What a sensor has still to evaluate: rows of the tap, and series that only the store has.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::{SeriesId, Timestamp, Value};
use store::Sequence;

use crate::limits::INBOX_BYTES_MAX;

/// The values of a row with the numbers of their fields. The sensors that read the row share them.
pub(super) type Values = Arc<[(u16, Value)]>;

/// A durable row of the tap.
#[derive(Debug, Clone)]
pub(super) struct WaitingRow {
    pub(super) series: SeriesId,
    pub(super) ts: Timestamp,
    pub(super) sequence: Sequence,
    pub(super) values: Values,
}

/// What a sensor has still to evaluate. The store keeps all rows, so an inbox that is full forgets the rows of a series and marks it.
///
/// Invariant: no row of a marked series waits. Otherwise newer rows would be taken before what the store has.
#[derive(Debug)]
pub(super) struct Inbox {
    rows: VecDeque<WaitingRow>,
    bytes: usize,
    /// Series to read from the store.
    unread: BTreeSet<SeriesId>,
    /// Whether all series of the sensor are to be read from the store, in the order of the times.
    reads_all: bool,
    /// The bytes of all inboxes.
    total: Arc<AtomicUsize>,
}

impl Inbox {
    /// An empty inbox, whose bytes count for the total of all inboxes.
    pub(super) fn new(total: &Arc<AtomicUsize>) -> Self {
        let (rows, unread) = (VecDeque::new(), BTreeSet::new());
        Self { rows, bytes: 0, unread, reads_all: false, total: Arc::clone(total) }
    }

    /// The inbox of a sensor that begins: it reads all its series from the store.
    pub(super) fn of_start(total: &Arc<AtomicUsize>) -> Self {
        let mut inbox = Self::new(total);
        inbox.reads_all = true;
        inbox
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.unread.is_empty() && !self.reads_all
    }

    /// Whether the rows of a series will be read from the store.
    pub(super) fn is_marked(&self, series: SeriesId) -> bool {
        self.reads_all || self.unread.contains(&series)
    }

    /// Whether a row has room, if all inboxes together may have `total_max` bytes.
    pub(super) fn has_room(&self, row: &WaitingRow, total_max: usize) -> bool {
        let bytes = row.bytes();
        self.bytes + bytes <= INBOX_BYTES_MAX && self.total.load(Ordering::Relaxed) + bytes <= total_max
    }

    /// Adds a row of a series that is not marked.
    pub(super) fn push(&mut self, row: WaitingRow) {
        self.add_bytes(row.bytes());
        self.rows.push_back(row);
    }

    /// The oldest row.
    pub(super) fn pop(&mut self) -> Option<WaitingRow> {
        let row = self.rows.pop_front()?;
        self.remove_bytes(row.bytes());
        Some(row)
    }

    /// Lets the rows of a series be read from the store.
    pub(super) fn mark(&mut self, series: SeriesId) {
        if !self.reads_all && self.unread.insert(series) {
            self.drop_marked();
        }
    }

    /// What is to be read from the store next: all series (`Some(None)`), or one.
    pub(super) fn to_read(&self) -> Option<Option<SeriesId>> {
        if self.reads_all {
            return Some(None);
        }
        self.unread.first().copied().map(Some)
    }

    /// The store has given all rows of a series, or of all.
    pub(super) fn has_read(&mut self, series: Option<SeriesId>) {
        match series {
            Some(series) => drop(self.unread.remove(&series)),
            None => self.reads_all = false,
        }
    }

    /// What a turn has left comes before what came meanwhile.
    pub(super) fn put_back(&mut self, mut rest: Self) {
        let newer = std::mem::take(&mut self.rows);
        self.remove_bytes(self.bytes);
        self.unread.append(&mut rest.unread);
        self.reads_all |= rest.reads_all;
        let older = std::mem::take(&mut rest.rows);
        rest.remove_bytes(rest.bytes);
        for row in older.into_iter().chain(newer) {
            self.push(row);
        }
        self.drop_marked();
    }

    fn drop_marked(&mut self) {
        if self.reads_all {
            self.unread.clear();
        }
        let rows = std::mem::take(&mut self.rows);
        let (gone, kept): (VecDeque<_>, VecDeque<_>) =
            rows.into_iter().partition(|row| self.is_marked(row.series));
        self.rows = kept;
        self.remove_bytes(gone.iter().map(WaitingRow::bytes).sum());
    }

    fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    fn remove_bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.total.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl WaitingRow {
    /// Bytes in memory.
    fn bytes(&self) -> usize {
        let texts = self.values.iter().map(|(_, value)| match value {
            Value::String(text) | Value::Json(text) => text.len(),
            _ => 0,
        });
        size_of::<Self>() + size_of_val(&*self.values) + texts.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(series: u64, us: i64) -> WaitingRow {
        let values: Values = Arc::new([(0, Value::I64(us))]);
        WaitingRow { series: SeriesId(series), ts: Timestamp::from_micros(us), sequence: 1, values }
    }

    fn rest(inbox: &mut Inbox) -> Vec<(u64, i64)> {
        std::iter::from_fn(|| inbox.pop()).map(|row| (row.series.0, row.ts.micros())).collect()
    }

    #[test]
    fn no_row_of_a_marked_series_waits() {
        let total = Arc::default();
        let mut inbox = Inbox::new(&total);
        [row(1, 10), row(2, 20), row(1, 30)].into_iter().for_each(|row| inbox.push(row));
        inbox.mark(SeriesId(1));
        assert!(inbox.is_marked(SeriesId(1)) && !inbox.is_marked(SeriesId(2)));
        assert_eq!(inbox.to_read(), Some(Some(SeriesId(1))));
        inbox.has_read(Some(SeriesId(1)));
        assert_eq!((inbox.to_read(), rest(&mut inbox)), (None, vec![(2, 20)]));
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_a_turn_has_left_comes_first() {
        let total = Arc::default();
        let (mut left, mut inbox) = (Inbox::new(&total), Inbox::new(&total));
        [row(1, 10), row(2, 20)].into_iter().for_each(|row| left.push(row));
        left.mark(SeriesId(3));
        // The slot did not know that the turn had not read this series.
        [row(3, 25), row(1, 30)].into_iter().for_each(|row| inbox.push(row));
        inbox.mark(SeriesId(2));
        inbox.put_back(left);
        assert!(inbox.is_marked(SeriesId(2)) && inbox.is_marked(SeriesId(3)));
        assert_eq!(rest(&mut inbox), [(1, 10), (1, 30)]);
        assert_eq!(total.load(Ordering::Relaxed), 0);
        let mut all = Inbox::of_start(&total);
        all.mark(SeriesId(1));
        assert_eq!(all.to_read(), Some(None));
        inbox.push(row(1, 40));
        inbox.put_back(all);
        assert!(inbox.pop().is_none() && !inbox.is_empty());
        inbox.has_read(None);
        assert!(inbox.is_empty());
    }

    #[test]
    fn an_inbox_has_a_bound_and_all_have_one_together() {
        let total = Arc::default();
        let (mut first, second) = (Inbox::new(&total), Inbox::new(&total));
        let mut pushed = 0;
        while first.has_room(&row(1, 1), usize::MAX) {
            first.push(row(1, 1));
            pushed += 1;
        }
        assert!(pushed > 1_000 && total.load(Ordering::Relaxed) <= INBOX_BYTES_MAX);
        assert!(second.has_room(&row(1, 1), usize::MAX));
        assert!(!second.has_room(&row(1, 1), INBOX_BYTES_MAX));
        drop(first);
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }
}
