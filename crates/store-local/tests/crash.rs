//! Cuts the power at every single operation of a workload that covers all disk operations of a store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{SeriesKey, TimeRange, Timestamp, Value};
use parking_lot::Mutex;
use store::conformance::{batch_of, collect, scan_all};
use store::{Deletion, Durability};
use store::{Maintenance, Reader, Writer, conformance};
use store_local::{Disk, Options};
use testkit::{Act, FaultyDisk, SlowDisk, Survivors};

use crate::support::{DIR, keep, numbers, open, put, reached, tiny, tiny_manual};

/// The written rows: by (device, ts) the numbers in the order in which they were sent, and the number of acked ones.
#[derive(Debug, Default, Clone)]
struct Ledger {
    /// Whether each device has a table of its own with one number, so that the tables share parts.
    narrow: bool,
    sent: BTreeMap<(&'static str, i64), Vec<i64>>,
    acked: BTreeMap<(&'static str, i64), usize>,
    next: i64,
    /// The number of rows of an unchecked table that retention has dropped.
    dropped: u64,
    /// Values of a key of device `a` that is dropped again and again: the newest of each time, and those that are acked.
    again: BTreeMap<i64, i64>,
    again_acked: BTreeMap<i64, i64>,
    /// Values up to this number were dropped, and the drop is acked.
    again_dropped: i64,
    erased: Erased,
}

/// Rows of a device whose rows are deleted again and again.
#[derive(Debug, Default, Clone)]
struct Erased {
    /// By time, the newest value that was sent, and the newest that is acked.
    sent: BTreeMap<i64, i64>,
    acked: BTreeMap<i64, i64>,
    /// Whether a deletion of all these rows was sent and is not acked.
    is_deleting: bool,
    /// Values up to this number were deleted, and the deletion is acked.
    deleted: i64,
}

impl Erased {
    fn check(&self, found: &BTreeMap<i64, i64>, when: &str) {
        let deleted = self.deleted;
        assert!(found.values().all(|n| *n > deleted), "{when}: {found:?} were deleted with {deleted}");
        let kept = self.acked.iter().filter(|(ts, n)| found.get(ts).is_some_and(|found| found >= n)).count();
        let is_whole = kept == self.acked.len() || kept == 0 && self.is_deleting;
        assert!(is_whole, "{when}: {found:?} of {:?}", self.acked);
    }
}

const DEVICES: [&str; 3] = ["a", "b", "c"];

impl Ledger {
    fn of(narrow: bool) -> Self {
        Self { narrow, ..Self::default() }
    }

    fn key(&self, device: &str) -> SeriesKey {
        let table = if self.narrow { format!("t-{device}") } else { "t".to_owned() };
        SeriesKey::device(table.as_str(), device).unwrap()
    }

    fn value(&self, n: i64) -> Value {
        if self.narrow { Value::F64(n as f64) } else { Value::I64(n) }
    }

    fn send(&mut self, device: &'static str, ts: i64) -> i64 {
        self.next += 1;
        self.sent.entry((device, ts)).or_default().push(self.next);
        self.next
    }

    /// Notes that all rows sent so far are acknowledged.
    fn ack_all(&mut self) {
        self.acked = self.sent.iter().map(|(row, numbers)| (*row, numbers.len())).collect();
        self.again_acked = self.again.clone();
        self.erased.acked = self.erased.sent.clone();
    }

    /// Writes a row of the device `erased` without waiting for it.
    fn put_erased(&mut self, store: &store_local::LocalStore, ts: i64) -> Option<()> {
        let series = store.series(&self.key("erased")).ok()?;
        self.next += 1;
        self.erased.sent.insert(ts, self.next);
        put(store, series, ts, self.value(self.next), Durability::Memory).ok().map(drop)
    }

    /// Deletes all rows of the device `erased`. Until the deletion is acked they may all be there or none.
    fn erase(&mut self, store: &store_local::LocalStore) -> Option<()> {
        let series_key = self.key("erased");
        let series = store.series(&series_key).ok()?;
        let deletion = Deletion::of_series(series, TimeRange::ALL).ok()?;
        self.erased.is_deleting = true;
        self.erased.sent.clear();
        let ticket = match self.next % 3 {
            // With tables that share parts the device has a table of its own.
            0 if self.narrow => store.drop_table(series_key.table()).ok().map(|_| 0)?,
            0 | 1 => store.delete_series(&deletion.series, Durability::Fsync).ok()?,
            _ => store.delete_rows(&deletion, Durability::Fsync).ok()?,
        };
        if !reached(store, Durability::Fsync, ticket) {
            return None;
        }
        self.erased.acked.clear();
        self.erased.deleted = self.next;
        self.erased.is_deleting = false;
        Some(())
    }

    /// The rows of the device `erased`.
    fn found_erased(&self, store: &store_local::LocalStore) -> Option<BTreeMap<i64, i64>> {
        let series = store.find_series(&self.key("erased"));
        Some(series.map(|series| numbers(store, series)).transpose().ok()?.into_iter().flatten().collect())
    }

    /// Drops the key `again`. Until the drop is acked its values may be there or not.
    fn drop_again(&mut self, store: &store_local::LocalStore) -> Option<()> {
        self.again_acked.clear();
        self.again.clear();
        assert!(store.drop_key(&conformance::table("t"), "again").ok()?, "the key had values");
        self.again_dropped = self.next;
        Some(())
    }

    fn check_again(&self, store: &store_local::LocalStore, when: &str) {
        let Some(series) = store.find_series(&self.key("a")) else { return };
        let found: BTreeMap<i64, i64> = collect(store, &scan_all(series, &["again"]))
            .unwrap()
            .into_iter()
            .map(|(ts, values)| match values[..] {
                [Some(Value::I64(n))] => (ts, n),
                _ => panic!("{when}: {values:?}"),
            })
            .collect();
        let dropped = self.again_dropped;
        assert!(found.values().all(|n| *n > dropped), "{when}: {found:?} were dropped with {dropped}");
        for (ts, n) in &self.again_acked {
            assert!(found.get(ts).is_some_and(|found| found >= n), "{when}: {n} at {ts} is lost: {found:?}");
        }
    }

    /// Notes the rows that an open store serves, because it promises to keep them.
    fn ack_found(&mut self, store: &store_local::LocalStore) -> Option<()> {
        for device in DEVICES {
            let Some(series) = store.find_series(&self.key(device)) else { continue };
            for (ts, number) in numbers(store, series).ok()? {
                let place = self.sent[&(device, ts)].iter().position(|sent| *sent == number).unwrap();
                self.acked.insert((device, ts), place + 1);
            }
        }
        let found = self.found_erased(store)?;
        self.erased.check(&found, "served after a kill");
        (self.erased.sent, self.erased.acked, self.erased.is_deleting) = (found.clone(), found, false);
        Some(())
    }

    /// Checks that every acked row exists exactly once, that no row was invented, and that no older write replaced a newer
    /// one.
    fn check(&self, store: &store_local::LocalStore, when: &str) {
        self.check_again(store, when);
        self.erased.check(&self.found_erased(store).unwrap(), when);
        for device in DEVICES {
            let key = self.key(device);
            let found = match store.find_series(&key) {
                Some(series) => numbers(store, series).unwrap(),
                None => Vec::new(),
            };
            let mut times = found.iter().map(|(ts, _)| *ts).collect::<Vec<_>>();
            times.dedup();
            assert_eq!(times.len(), found.len(), "{when}: a row twice");
            let found: BTreeMap<i64, i64> = found.into_iter().collect();
            for ((_, ts), acked) in self.acked.iter().filter(|((of, _), _)| *of == device) {
                let number =
                    found.get(ts).unwrap_or_else(|| panic!("{when}: acked row {device} {ts} is lost"));
                let place = self.sent[&(device, *ts)].iter().position(|sent| sent == number);
                assert!(
                    place.is_some_and(|place| place + 1 >= *acked),
                    "{when}: {device} {ts} went back to {number}"
                );
            }
            for (ts, number) in &found {
                let sent = self.sent.get(&(device, *ts)).is_some_and(|sent| sent.contains(number));
                assert!(sent, "{when}: {device} {ts} {number} was never sent");
            }
        }
    }
}

/// Runs until the power is cut. The ledger has the results.
fn workload(disk: &(impl Disk + Clone), options: &Options, ledger: &mut Ledger) -> Option<()> {
    for round in 0..3_i64 {
        let (store, _) = open(disk, options.clone()).ok()?;
        ledger.ack_found(&store)?;
        for step in 0..10 {
            for device in &DEVICES[..1 + (round as usize).min(2)] {
                let series = store.series(&ledger.key(device)).ok()?;
                let day = 86_400_000_000 * (step % 2);
                let n = ledger.send(device, day + round * 10 + step);
                let class = Durability::ALL[(n % 3) as usize];
                put(&store, series, day + round * 10 + step, ledger.value(n), class).ok()?;
            }
            // Rows of one moment after the other, some of them in the chunk of the deletion, some in parts.
            ledger.put_erased(&store, step % 3)?;
            if step % 5 == 3 {
                ledger.erase(&store)?;
                ledger.put_erased(&store, step % 3)?;
            }
            let series = store.series(&ledger.key("a")).ok()?;
            let n = ledger.send("a", step);
            // A new column is defined in the same batch as its first value.
            let column = format!("column {round} {step}");
            let again = ("again", Value::I64(n));
            let fields = [("n", ledger.value(n)), (column.as_str(), Value::Bool(true)), again];
            let fields = if ledger.narrow { &fields[..1] } else { &fields };
            if !ledger.narrow {
                ledger.again.insert(step, n);
            }
            let ticket = store.append(&batch_of(series, &[(step, fields)]), Durability::Fsync).ok()?;
            if !reached(&store, Durability::Fsync, ticket) {
                return None;
            }
            ledger.ack_all();
            if step % 4 == 3 {
                // The flush has a row that the log has not written yet.
                let n = ledger.send("a", 100 + step);
                put(&store, series, 100 + step, ledger.value(n), Durability::Memory).ok()?;
                store.flush().ok()?;
                ledger.ack_all();
            }
            if step % 5 == 4 {
                if !ledger.narrow {
                    ledger.drop_again(&store)?;
                }
                store.flush().ok()?;
                ledger.ack_all();
                store.compact().ok()?;
                // Rows of the first table stay. Retention drops rows of another one, so that crashes hit drops and merges too.
                let other = store.series(&SeriesKey::device("short", "x").ok()?).ok()?;
                put(&store, other, step, ledger.value(step), Durability::Memory).ok()?;
                store.flush().ok()?;
                ledger.ack_all();
                store
                    .set_ttl(&conformance::table("short"), Some(std::time::Duration::from_secs(86_400)))
                    .ok()?;
                ledger.dropped += store.drop_expired(Timestamp::from_micros(3 * 86_400_000_000)).ok()?;
            }
        }
        // The process ends with written but unsynced rows. The next process must sync the rows that it serves.
        let series = store.series(&ledger.key("a")).ok()?;
        let n = ledger.send("a", 200 + round);
        let ticket = put(&store, series, 200 + round, ledger.value(n), Durability::Os).ok()?;
        reached(&store, Durability::Os, ticket);
        if round == 1 {
            store.close().ok()?;
        }
    }
    Some(())
}

/// Checks that the workload covers all kinds of operations.
#[test]
fn the_workload_merges_drops_rewrites_the_manifest_and_recycles_the_log() {
    for narrow in [false, true] {
        let disk = SlowDisk::new(FaultyDisk::new());
        let met = Arc::new(Mutex::new(BTreeSet::new()));
        let seen = met.clone();
        let _watched = disk.hold(move |operation| {
            let name = operation.path.file_name().unwrap_or_default().to_string_lossy();
            let kind = name.split_once('.').filter(|(number, _)| number.len() == 16);
            let kind = kind.map_or(&*name, |(_, kind)| kind).to_owned();
            let by = operation.thread.strip_prefix("store-").unwrap_or("caller").to_owned();
            seen.lock().insert((by, operation.act as u8, kind));
            false
        });
        let options = Options { preallocate: true, segment_bytes: 1024, ..tiny_manual() };
        let mut ledger = Ledger::of(narrow);
        workload(&disk, &options, &mut ledger).unwrap();
        assert!(ledger.dropped > 0);
        let met = met.lock();
        let has = |by: &str, act: Act, kind: &str| met.contains(&(by.to_owned(), act as u8, kind.to_owned()));
        // A file whose name ends with `tmp` is renamed when it is complete.
        for (by, act, kind) in [
            ("log", Act::Sync, "log"),
            ("log", Act::Name, "spare"),
            ("flush", Act::Name, "parquet.tmp"),
            // The writer that makes it long writes it again.
            ("flush or compact or caller", Act::Name, "manifest.tmp"),
            ("flush", Act::Sync, "series"),
            ("flush", Act::Sync, "manifest"),
            ("flush", Act::Name, "log"),
            ("compact", Act::Read, "parquet"),
            ("compact", Act::Name, "parquet.tmp"),
            ("compact", Act::Sync, "parts"),
            ("compact", Act::Sync, "manifest"),
            ("compact", Act::Name, "parquet"),
        ] {
            let was_met = by.split(" or ").any(|by| has(by, act, kind));
            assert!(was_met, "nobody met {by} {act:?} {kind} of {met:?}");
        }
    }
}

fn cut_everywhere(options: &Options, narrow: bool) {
    let disk = FaultyDisk::new();
    workload(&disk, options, &mut Ledger::of(narrow)).unwrap();
    let operations = disk.operations();
    assert!(operations > 300, "{operations}");
    for operation in 0..operations {
        let disk = FaultyDisk::new();
        let mut ledger = Ledger::of(narrow);
        disk.cut_power_at(operation);
        let _ = workload(&disk, options, &mut ledger);
        let random = [Survivors::Random(operation), Survivors::Random(operation + 1_000_000)];
        for survivors in [Survivors::Synced, Survivors::All].into_iter().chain(random) {
            let when = format!("cut at {operation} of {operations}, {survivors:?}");
            recover_and_continue(&disk.reboot(survivors), options, ledger.clone(), &when);
        }
    }
}

/// Kills the process at every operation, and cuts the power soon after the next process has started.
#[test]
fn what_a_killed_process_left_is_kept_once_it_was_served() {
    let options = Options { preallocate: true, segment_bytes: 1024, ..tiny_manual() };
    let disk = FaultyDisk::new();
    workload(&disk, &options, &mut Ledger::default()).unwrap();
    for operation in 0..disk.operations() {
        let disk = FaultyDisk::new();
        let mut ledger = Ledger::default();
        disk.cut_power_at(operation);
        let _ = workload(&disk, &options, &mut ledger);
        disk.heal();
        let (store, report) = open(&disk, options.clone()).unwrap();
        assert!(report.damages.is_empty(), "killed at {operation}: {report:?}");
        ledger.ack_found(&store).unwrap();
        let disk = disk.reboot(Survivors::Synced);
        drop(store);
        recover_and_continue(
            &disk,
            &options,
            ledger,
            &format!("killed at {operation}, then the power went off"),
        );
    }
}

fn recover_and_continue(disk: &FaultyDisk, options: &Options, mut ledger: Ledger, when: &str) {
    let (store, report) = open(disk, options.clone()).unwrap_or_else(|error| panic!("{when}: {error}"));
    assert!(report.damages.is_empty(), "{when}: {report:?}");
    ledger.check(&store, when);
    for device in DEVICES {
        let series = store.series(&ledger.key(device)).unwrap();
        let n = ledger.send(device, 7);
        keep(&store, series, 7, ledger.value(n)).unwrap();
    }
    ledger.ack_all_of(7);
    ledger.check(&store, when);
    store.flush().unwrap();
    drop(store);
    let (store, report) = open(disk, options.clone()).unwrap();
    assert!(report.damages.is_empty() && report.torn_tail.is_none(), "{when}: {report:?}");
    ledger.check(&store, &format!("{when}, reopened"));
    let leftovers = disk.paths().into_iter().filter(|path| path.to_string_lossy().contains("tmp"));
    assert_eq!(leftovers.count(), 0, "{when}: {:?} in {DIR}", disk.paths());
}

impl Ledger {
    fn ack_all_of(&mut self, ts: i64) {
        let rows = self.sent.iter().filter(|((_, of), _)| *of == ts);
        self.acked.extend(rows.map(|(row, numbers)| (*row, numbers.len())));
    }
}

#[test]
fn a_power_cut_at_any_operation_loses_no_acked_row_and_invents_none() {
    cut_everywhere(&tiny_manual(), false);
}

#[test]
fn and_neither_with_segments_that_are_recycled() {
    cut_everywhere(&Options { preallocate: true, segment_bytes: 1024, ..tiny_manual() }, false);
}

#[test]
fn and_neither_with_parts_that_tables_share() {
    cut_everywhere(&tiny_manual(), true);
}

/// The flusher and the compactor run at any time, so each run differs. The promises are the same.
#[test]
fn and_neither_while_the_store_flushes_and_merges_by_itself() {
    let by_itself = Options { memtable_flush_bytes: 512, ..tiny() };
    let disk = FaultyDisk::new();
    workload(&disk, &by_itself, &mut Ledger::default()).unwrap();
    let operations = disk.operations();
    assert!(operations > 300, "{operations}");
    for operation in (0..operations).step_by(3) {
        let disk = FaultyDisk::new();
        let mut ledger = Ledger::default();
        disk.cut_power_at(operation);
        let _ = workload(&disk, &by_itself, &mut ledger);
        for survivors in [Survivors::Synced, Survivors::All, Survivors::Random(operation)] {
            let when = format!("cut at {operation} of about {operations}, {survivors:?}");
            recover_and_continue(&disk.reboot(survivors), &tiny_manual(), ledger.clone(), &when);
        }
    }
}
