//! The tap: its interests, its queue, and the wake of its reader.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::time::Duration;

use model::{Batch, SeriesId};
use parking_lot::{Condvar, Mutex, RwLock};
use prometheus_client::metrics::gauge::Gauge;
use store::{Durability, Progress, ProgressWatcher, Sequence, Store, Ticket};
use uuid::Uuid;

use super::keys::WantedKeys;
use super::pending::{Pending, TakenRows};
use super::rows::Rows;

/// A tap with one reader.
#[derive(Debug)]
pub struct Tap {
    // Ingest reads it for every batch and locks the map below only if it is above 0.
    wanted_series: AtomicUsize,
    wanted: RwLock<HashMap<SeriesId, Wanted>>,
    pending: Mutex<Pending>,
    // Whether anything waits. The store's thread reads it without a lock.
    waiting: AtomicUsize,
    wake: Mutex<Wake>,
    woken: Condvar,
    queued_bytes: Gauge,
}

/// What the reader wants of a series.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The device that writes the series.
    pub device: Uuid,
    pub keys: Arc<WantedKeys>,
}

#[derive(Debug, Default)]
struct Wake {
    pending: bool,
    stop: bool,
}

impl Tap {
    /// A tap without interests, whose queue has a bound in bytes. The gauge shows the bytes of the queue.
    pub fn new(bytes_max: usize, queued_bytes: Gauge) -> Self {
        Self {
            wanted_series: AtomicUsize::new(0),
            wanted: RwLock::default(),
            pending: Mutex::new(Pending::new(bytes_max)),
            waiting: AtomicUsize::new(0),
            wake: Mutex::default(),
            woken: Condvar::new(),
            queued_bytes,
        }
    }

    /// Wants keys of a series from now on.
    pub fn want(&self, series: SeriesId, device: Uuid, keys: &Arc<WantedKeys>) {
        let known = |wanted: &Wanted| wanted.device == device && Arc::ptr_eq(&wanted.keys, keys);
        if self.wanted.read().get(&series).is_some_and(known) {
            return;
        }
        let mut wanted = self.wanted.write();
        wanted.insert(series, Wanted { device, keys: Arc::clone(keys) });
        self.wanted_series.store(wanted.len(), Ordering::Release);
    }

    /// Wants no more of the series for which `is_over` says so.
    pub fn unwant(&self, is_over: impl Fn(SeriesId, &Wanted) -> bool) {
        let mut wanted = self.wanted.write();
        wanted.retain(|series, of_series| !is_over(*series, of_series));
        self.wanted_series.store(wanted.len(), Ordering::Release);
    }

    /// What is wanted of a series.
    pub fn wanted(&self, series: SeriesId) -> Option<Wanted> {
        self.wanted.read().get(&series).cloned()
    }

    /// Queues the wanted values of a batch that ends at `sequence`. Returns whether the batch has any.
    pub(crate) fn queue(&self, batch: &Batch, sequence: Sequence, durability: Durability) -> bool {
        if self.wanted_series.load(Ordering::Acquire) == 0 {
            return false;
        }
        let rows = {
            let wanted = self.wanted.read();
            Rows::of(batch, |series| wanted.get(&series).map(|wanted| &*wanted.keys))
        };
        if rows.is_empty() {
            return false;
        }
        let mut pending = self.pending.lock();
        pending.push(Ticket::of_rows(sequence, batch.len()), durability, rows);
        self.count(&pending);
        // The caller reads the store's progress next. The store's thread sets the progress and then reads this counter.
        // The fence makes sure that one of the two sees the change of the other.
        fence(Ordering::SeqCst);
        true
    }

    /// Takes what is durable in a store.
    pub fn take_durable(&self, store: &dyn Store) -> TakenRows {
        self.take(store.progress(), &|ticket| store.late_failure(ticket).is_some())
    }

    /// Takes what is durable. `is_lost` indicates whether the store lost a write.
    fn take(&self, progress: Progress, is_lost: &dyn Fn(Ticket) -> bool) -> TakenRows {
        let mut pending = self.pending.lock();
        let taken = pending.take_ready(progress, is_lost);
        self.count(&pending);
        taken
    }

    /// Whether rows of a series wait.
    pub fn has_rows_of(&self, series: SeriesId) -> bool {
        self.pending.lock().has(series)
    }

    /// Wakes the reader.
    pub fn wake_up(&self) {
        self.wake.lock().pending = true;
        self.woken.notify_one();
    }

    /// Waits for a wake, at most for `timeout`. Returns `false` when the reader must stop.
    pub fn wait(&self, timeout: Duration) -> bool {
        let mut wake = self.wake.lock();
        if !wake.pending && !wake.stop {
            self.woken.wait_for(&mut wake, timeout);
        }
        wake.pending = false;
        !wake.stop
    }

    /// Ends the reader.
    pub fn stop(&self) {
        self.wake.lock().stop = true;
        self.woken.notify_all();
    }

    /// Whether the reader must stop.
    pub fn is_stopped(&self) -> bool {
        self.wake.lock().stop
    }

    fn count(&self, pending: &Pending) {
        self.waiting.store(usize::from(!pending.is_empty()), Ordering::Release);
        self.queued_bytes.set(i64::try_from(pending.bytes()).unwrap_or(i64::MAX));
    }
}

impl ProgressWatcher for Tap {
    fn progress(&self, _: Progress) {
        // The other half of the fence in `queue`.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Acquire) > 0 {
            self.wake_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Timestamp, ValueRef};

    use super::super::rows::TapRow;
    use super::*;

    fn tap(bytes_max: usize) -> Tap {
        Tap::new(bytes_max, Gauge::default())
    }

    fn keys() -> Arc<WantedKeys> {
        Arc::new(WantedKeys::new([("a".into(), 0), ("text".into(), 1)], 7))
    }

    fn batch(series: u64, ts: i64, key: &str, value: ValueRef<'_>) -> Batch {
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        builder.field(key, value);
        builder.row(SeriesId(series), Timestamp::from_micros(ts));
        builder.finish();
        batch
    }

    fn durable(sequence: Sequence) -> Progress {
        Progress { appended: 100, written: sequence, durable: sequence, sealed: false }
    }

    fn times(taken: &TakenRows) -> Vec<i64> {
        taken.rows().map(|row| row.ts().micros()).collect()
    }

    #[test]
    fn only_wanted_keys_of_wanted_series_pass_and_only_when_they_are_durable() {
        let tap = tap(1 << 20);
        assert!(!tap.queue(&batch(1, 10, "a", ValueRef::I64(1)), 1, Durability::Fsync));
        tap.want(SeriesId(1), Uuid::nil(), &keys());
        assert!(!tap.queue(&batch(1, 10, "b", ValueRef::I64(1)), 1, Durability::Fsync));
        assert!(!tap.queue(&batch(2, 10, "a", ValueRef::I64(1)), 2, Durability::Fsync));
        assert!(tap.queue(&batch(1, 30, "text", ValueRef::String("on")), 4, Durability::Fsync));
        assert!(tap.queue(&batch(1, 20, "a", ValueRef::F64(0.5)), 3, Durability::Fsync));
        assert!(times(&tap.take(durable(2), &|_| false)).is_empty());
        let taken = tap.take(durable(4), &|_| false);
        let seen: Vec<_> =
            taken.rows().map(|row| (row.ts().micros(), row.values().next().unwrap())).collect();
        assert_eq!(seen, [(20, (0, ValueRef::F64(0.5))), (30, (1, ValueRef::String("on")))]);
        assert_eq!(taken.rows().map(TapRow::generation).collect::<Vec<_>>(), [7, 7]);
        tap.unwant(|_, _| true);
        assert!(!tap.queue(&batch(1, 40, "a", ValueRef::I64(1)), 5, Durability::Fsync));
    }

    #[test]
    fn a_row_is_an_element_whatever_its_keys_and_their_case() {
        let tap = tap(1 << 20);
        let keys = Arc::new(WantedKeys::of_elements([("speed".into(), 300)], 1));
        tap.want(SeriesId(1), Uuid::nil(), &keys);
        assert!(tap.queue(&batch(1, 10, "Speed", ValueRef::I64(1)), 1, Durability::Fsync));
        assert!(tap.queue(&batch(1, 20, "other", ValueRef::I64(2)), 2, Durability::Fsync));
        let taken = tap.take(durable(2), &|_| false);
        let seen: Vec<_> =
            taken.rows().map(|row| (row.ts().micros(), row.sequence(), row.values().next())).collect();
        assert_eq!(seen, [(10, 1, Some((300, ValueRef::I64(1)))), (20, 2, None)]);
    }

    #[test]
    fn a_series_without_room_is_marked_until_its_rows_are_durable_and_others_pass() {
        let tap = tap(400);
        for series in [1, 2] {
            tap.want(SeriesId(series), Uuid::nil(), &keys());
        }
        let text = "x".repeat(300);
        tap.queue(&batch(1, 10, "a", ValueRef::I64(1)), 1, Durability::Fsync);
        tap.queue(&batch(1, 20, "text", ValueRef::String(&text)), 2, Durability::Fsync);
        tap.queue(&batch(1, 30, "a", ValueRef::I64(1)), 3, Durability::Fsync);
        let taken = tap.take(durable(2), &|_| false);
        assert_eq!((times(&taken), taken.lost.len()), (vec![10], 0), "row 3 belongs to the mark");
        tap.queue(&batch(2, 40, "a", ValueRef::I64(1)), 4, Durability::Fsync);
        let taken = tap.take(durable(4), &|_| false);
        assert_eq!((times(&taken), &*taken.lost), (vec![40], &[SeriesId(1)][..]));
        tap.queue(&batch(1, 50, "a", ValueRef::I64(1)), 5, Durability::Fsync);
        assert_eq!(times(&tap.take(durable(5), &|_| false)), [50], "the mark is gone");
    }

    #[test]
    fn the_reader_reads_a_series_again_if_the_store_lost_a_write_of_it() {
        let tap = tap(1 << 20);
        for series in [1, 2] {
            tap.want(SeriesId(series), Uuid::nil(), &keys());
        }
        tap.queue(&batch(1, 10, "a", ValueRef::I64(1)), 1, Durability::Fsync);
        tap.queue(&batch(2, 20, "a", ValueRef::I64(1)), 2, Durability::Fsync);
        tap.queue(&batch(2, 30, "a", ValueRef::I64(1)), 3, Durability::Fsync);
        let taken = tap.take(durable(3), &|ticket| ticket == Ticket::of_rows(2, 1));
        assert_eq!(
            (times(&taken), &*taken.lost),
            (vec![10], &[SeriesId(2)][..]),
            "row 3 is read with the series"
        );
    }

    #[test]
    fn a_sealed_store_drops_what_was_not_durable() {
        let tap = tap(1 << 20);
        tap.want(SeriesId(1), Uuid::nil(), &keys());
        tap.queue(&batch(1, 10, "a", ValueRef::I64(1)), 1, Durability::Fsync);
        tap.queue(&batch(1, 20, "a", ValueRef::I64(1)), 2, Durability::Fsync);
        assert_eq!(times(&tap.take(Progress { sealed: true, ..durable(1) }, &|_| false)), [10]);
        assert!(times(&tap.take(durable(2), &|_| false)).is_empty());
    }
}
