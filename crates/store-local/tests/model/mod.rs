//! Random work, crashes and power cuts against the reference store.
//!
//! Until a power cut both stores must agree exactly. After it the store must have all durable rows. Each later value may be any
//! value that was sent since. Then the test sets the reference to the content of the store.

mod deletions;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use model::{Batch, SeriesKey, TimeRange, Timestamp, Value};
use proptest::prelude::*;
use store::conformance::{collect, collect_table, read_all, scan_all};
use store::{Durability, MemoryStore, Order, Scan, Store, TableRead};
use store::{Maintenance, Writer, conformance};
use store_local::{LocalStore, Options};
use testkit::{FaultyDisk, Survivors};

use crate::support::{eventually, open, reached, tiny};
use deletions::DeleteAction;

const DEVICES: u8 = 3;
const KEYS: [&str; 4] = ["a", "b", "a:string", "ts"];
/// The key of such values.
const GONE: &str = "gone";
/// Stands for a value of a key that was dropped since: the row stays a row.
const BARE: u8 = KEYS.len() as u8;

#[derive(Debug, Clone)]
struct RowAction {
    device: u8,
    ts: i64,
    fields: Vec<(u8, Value)>,
}

#[derive(Debug, Clone)]
enum Action {
    Append(Vec<RowAction>, Durability),
    /// Appends with class fsync and waits.
    Keep(Vec<RowAction>),
    Flush,
    Compact,
    DropKey(u8),
    DropTable(&'static str),
    Delete(DeleteAction, Durability),
    /// Deletes with class fsync and waits.
    DeleteForGood(DeleteAction),
    Close,
    Kill,
    PowerCut(Option<u64>),
    Read(Order, i64, i64, usize),
    Table(tables::TableAction),
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => any::<i8>().prop_map(|n| Value::I64(n.into())),
        2 => any::<i16>().prop_map(|n| Value::F64(f64::from(n) / 8.0)),
        1 => any::<bool>().prop_map(Value::Bool),
        2 => "[a-zé]{0,20}".prop_map(Value::String),
        1 => (0..9).prop_map(|n| Value::Json(format!("[{n}]"))),
    ]
}

/// A few times, some of them far apart, so that rows repeat and partitions differ.
fn ts() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![4 => 0..20_i64, 1 => (-3..3_i64).prop_map(|day| day * 86_400_000_000 - 1)]
}

/// A row with one f64. Log, memtable and parts treat such rows differently.
fn number() -> impl Strategy<Value = RowAction> + Clone {
    (0..DEVICES, ts(), any::<i16>()).prop_map(|(device, ts, n)| {
        let fields = vec![(0, Value::F64(f64::from(n) / 8.0))];
        RowAction { device, ts, fields }
    })
}

fn rows() -> impl Strategy<Value = Vec<RowAction>> {
    let field = (0..KEYS.len() as u8, value());
    let row = (0..DEVICES, ts(), prop::collection::vec(field, 0..4));
    let row = row.prop_map(|(device, ts, fields)| RowAction { device, ts, fields }).boxed();
    let some = prop_oneof![8 => number(), 1 => row.clone()];
    prop_oneof![
        3 => prop::collection::vec(row, 1..12),
        2 => prop::collection::vec(number(), 1..24),
        1 => prop::collection::vec(some, 1..24),
    ]
}

/// Nearly always rows with one f64, so that tables stay narrow for long, and some forever.
fn number_rows() -> impl Strategy<Value = Vec<RowAction>> {
    prop_oneof![40 => prop::collection::vec(number(), 1..24), 1 => rows()]
}

fn action(rows: impl Strategy<Value = Vec<RowAction>> + 'static) -> impl Strategy<Value = Action> {
    let rows = rows.boxed();
    let class = prop::sample::select(Durability::ALL.to_vec());
    let order = prop::sample::select(vec![Order::Ascending, Order::Descending]);
    prop_oneof![
        10 => (rows.clone(), class.clone()).prop_map(|(rows, class)| Action::Append(rows, class)),
        4 => rows.prop_map(Action::Keep),
        3 => Just(Action::Flush),
        1 => Just(Action::Compact),
        1 => (0..KEYS.len() as u8).prop_map(Action::DropKey),
        1 => prop::sample::select(vec!["t", "u"]).prop_map(Action::DropTable),
        3 => (deletions::delete(), class.clone()).prop_map(|(delete, class)| Action::Delete(delete, class)),
        2 => deletions::delete().prop_map(Action::DeleteForGood),
        1 => Just(Action::Close),
        1 => Just(Action::Kill),
        2 => prop::option::of(any::<u64>()).prop_map(Action::PowerCut),
        4 => tables::read().prop_map(Action::Table),
        3 => (order, -5..20_i64, 0..25_i64, 0..9_usize).prop_map(|(o, from, to, limit)| Action::Read(o, from, to, limit)),
    ]
}

/// What a power cut may take.
#[derive(Debug, Clone)]
enum Change {
    Row(RowAction),
    Delete(DeleteAction),
}

struct World {
    disk: FaultyDisk,
    store: Option<LocalStore>,
    /// All appended rows.
    reference: MemoryStore,
    /// All rows that are known to be durable.
    certain: MemoryStore,
    /// The rows and deletions since.
    uncertain: Vec<Change>,
    options: Options,
}

/// Values by (ts, key).
type Content = BTreeMap<(i64, &'static str), Value>;

fn key(device: u8) -> SeriesKey {
    let table = if device == 2 { "u" } else { "t" };
    SeriesKey::device(table, &format!("d{device}")).unwrap()
}

fn batch(store: &dyn Store, rows: &[RowAction]) -> Batch {
    let mut batch = Batch::new();
    for row in rows {
        let series = store.series(&key(row.device)).unwrap();
        let mut builder = batch.builder();
        for (key, value) in &row.fields {
            builder.field(KEYS.get(*key as usize).copied().unwrap_or(GONE), value.as_ref());
        }
        builder.row(series, Timestamp::from_micros(row.ts));
        builder.finish();
    }
    batch
}

/// Applies changes to a reference; rows of values that were dropped since stay bare.
fn apply(reference: &MemoryStore, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Row(row) => {
                let batch = batch(reference, std::slice::from_ref(row));
                reference.append(&batch, Durability::Memory).unwrap();
            }
            Change::Delete(delete) => {
                delete.send(reference, Durability::Memory).transpose().unwrap();
            }
        }
    }
    for table in ["t", "u"] {
        reference.drop_key(&conformance::table(table), GONE).unwrap();
    }
}

/// The times of a device's rows, with values or without.
fn times(store: &dyn Store, device: u8) -> BTreeSet<i64> {
    let key = key(device);
    let Some(snapshot) = store.snapshot(key.table()).unwrap() else { return BTreeSet::new() };
    let columns = vec![0, snapshot.columns().ts_index()];
    let read = TableRead { columns, ..read_all(snapshot.as_ref()) };
    let rows = collect_table(snapshot.as_ref(), &read).unwrap().concat();
    let of_device = |row: &Vec<Option<Value>>| row[0] == Some(Value::String(format!("d{device}")));
    let ts = |row: &Vec<Option<Value>>| match row[1] {
        Some(Value::I64(ts)) => ts,
        _ => panic!("each row has a time"),
    };
    rows.iter().filter(|row| of_device(row)).map(ts).collect()
}

fn content(store: &dyn Store, device: u8) -> Content {
    let mut content = Content::new();
    if let Some(series) = store.find_series(&key(device)) {
        for (ts, values) in collect(store, &scan_all(series, &KEYS)).unwrap() {
            let values = KEYS.into_iter().zip(values);
            content.extend(values.filter_map(|(key, value)| Some(((ts, key), value?))));
        }
    }
    content
}

impl World {
    fn new(options: Options) -> Self {
        let disk = FaultyDisk::new();
        let store = Some(open(&disk, options.clone()).unwrap().0);
        let (reference, certain) = (MemoryStore::new(), MemoryStore::new());
        Self { disk, store, reference, certain, uncertain: Vec::new(), options }
    }

    fn store(&self) -> &LocalStore {
        self.store.as_ref().unwrap()
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Append(rows, class) => drop(self.append(rows, *class)),
            Action::Keep(rows) => {
                let ticket = self.append(rows, Durability::Fsync);
                assert!(reached(self.store(), Durability::Fsync, ticket));
                self.all_is_certain();
            }
            Action::Flush => {
                self.store().flush().unwrap();
                self.all_is_certain();
            }
            Action::Compact => self.store().compact().unwrap(),
            Action::DropKey(key) => self.drop_key(*key),
            Action::DropTable(table) => self.drop_table(table),
            Action::Delete(delete, class) => drop(self.delete(delete, *class)),
            Action::DeleteForGood(delete) => {
                if let Some(ticket) = self.delete(delete, Durability::Fsync) {
                    assert!(reached(self.store(), Durability::Fsync, ticket));
                    self.delete_is_certain();
                }
            }
            Action::Close => {
                self.store().close().unwrap();
                self.all_is_certain();
                self.reopen();
            }
            Action::Kill => self.end(Survivors::All),
            Action::PowerCut(None) => self.end(Survivors::Synced),
            Action::PowerCut(Some(seed)) => self.end(Survivors::Random(*seed)),
            Action::Table(read) => read.compare(self.store(), &self.reference),
            Action::Read(order, from, to, limit) => self.read(*order, (*from, *to), *limit),
        }
    }

    fn append(&mut self, rows: &[RowAction], class: Durability) -> u64 {
        self.reference.append(&batch(&self.reference, rows), Durability::Memory).unwrap();
        self.uncertain.extend(rows.iter().cloned().map(Change::Row));
        let batch = batch(self.store(), rows);
        eventually(|| self.store().append(&batch, class).ok())
    }

    /// Deletes rows; `None` when no device has any.
    fn delete(&mut self, delete: &DeleteAction, class: Durability) -> Option<u64> {
        let ticket = eventually(|| match delete.send(self.store(), class) {
            Some(Err(_)) => None,
            other => Some(other.map(Result::unwrap)),
        });
        apply(&self.reference, &[Change::Delete(delete.clone())]);
        self.uncertain.push(Change::Delete(delete.clone()));
        ticket
    }

    /// Notes that the last deletion is durable. A deletion of nothing is durable without the rows before it.
    fn delete_is_certain(&mut self) {
        let progress = self.store().progress();
        if progress.durable == progress.appended {
            self.all_is_certain();
        }
    }

    /// Drops a table. Nothing of it comes back, even after a power cut.
    fn drop_table(&mut self, table: &str) {
        let known = self.reference.drop_table(&conformance::table(table)).unwrap();
        let found = eventually(|| self.store().drop_table(&conformance::table(table)).ok());
        assert!(found || !known, "{table}");
        self.certain.drop_table(&conformance::table(table)).unwrap();
        self.uncertain.retain(|change| match change {
            Change::Row(row) => key(row.device).table().name() != table,
            Change::Delete(delete) => !delete.is_of(table),
        });
    }

    /// Drops a key of the table `t`. What was appended before has no value of it any more, even after a power cut.
    fn drop_key(&mut self, dropped: u8) {
        let name = KEYS[dropped as usize];
        let known = self.reference.drop_key(&conformance::table("t"), name).unwrap();
        let found = eventually(|| self.store().drop_key(&conformance::table("t"), name).ok());
        // After a power cut the reference does not know of keys whose values are gone.
        assert!(found || !known, "{name}");
        self.certain.drop_key(&conformance::table("t"), name).unwrap();
        let rows = self.uncertain.iter_mut().filter_map(|change| match change {
            Change::Row(row) => Some(row),
            Change::Delete(_) => None,
        });
        for row in rows.filter(|row| row.device != 2) {
            for (key, _) in row.fields.iter_mut().filter(|(key, _)| *key == dropped) {
                *key = BARE;
            }
        }
    }

    fn all_is_certain(&mut self) {
        apply(&self.certain, &std::mem::take(&mut self.uncertain));
    }

    fn reopen(&mut self) {
        self.store = None;
        let (store, report) = open(&self.disk, self.options.clone()).unwrap();
        assert!(report.damages.is_empty(), "{report:?}");
        self.store = Some(store);
        self.compare();
    }

    /// Ends the process, perhaps with a power cut, and takes the surviving rows as the new reference.
    fn end(&mut self, survivors: Survivors) {
        let disk = self.disk.reboot(survivors);
        self.store = None;
        self.disk = disk;
        let (store, report) = open(&self.disk, self.options.clone()).unwrap();
        assert!(report.damages.is_empty(), "{report:?}");
        let kept: Vec<RowAction> = (0..DEVICES).flat_map(|device| self.check_kept(&store, device)).collect();
        self.check_deletions(&store);
        let kept: Vec<Change> = kept.into_iter().map(Change::Row).collect();
        self.store = Some(store);
        (self.reference, self.certain) = (MemoryStore::new(), MemoryStore::new());
        self.uncertain.clear();
        for store in [&self.reference, &self.certain] {
            apply(store, &kept);
        }
        self.compare();
    }

    fn uncertain_rows(&self, device: u8) -> impl Iterator<Item = &RowAction> {
        self.uncertain.iter().filter_map(move |change| match change {
            Change::Row(row) => Some(row).filter(|row| row.device == device),
            Change::Delete(_) => None,
        })
    }

    fn uncertain_deletions(&self) -> impl Iterator<Item = &DeleteAction> {
        self.uncertain.iter().filter_map(|change| match change {
            Change::Delete(delete) => Some(delete),
            Change::Row(_) => None,
        })
    }

    /// Checks that each deletion that was not known to be durable is there as a whole or not at all.
    fn check_deletions(&self, store: &LocalStore) {
        let mut cells = Vec::new();
        for device in 0..DEVICES {
            let (found, before) = (content(store, device), content(&self.certain, device));
            let rows: BTreeSet<i64> = self.uncertain_rows(device).map(|row| row.ts).collect();
            let of_device = deletions::cells(device, &before).filter(|(_, cell)| !rows.contains(&cell.0));
            cells.extend(of_device.map(|(device, cell)| (device, cell, found.contains_key(&cell))));
        }
        let deletions = || self.uncertain_deletions().enumerate();
        for (index, delete) in deletions() {
            let others = |(device, cell, _): &&(u8, (i64, &str), bool)| {
                !deletions().any(|(other, of)| other != index && of.has(*device, *cell))
            };
            delete.check_whole(cells.iter().filter(others).copied());
        }
    }

    /// Checks that each value is the durable one or one that was written later; it may be gone if it was deleted.
    fn check_kept(&self, store: &LocalStore, device: u8) -> Vec<RowAction> {
        let found = content(store, device);
        let before = content(&self.certain, device);
        let mut possible: BTreeMap<(i64, &str), Vec<Option<Value>>> = BTreeMap::new();
        for cell in found.keys().chain(before.keys()) {
            possible.insert(*cell, vec![before.get(cell).cloned()]);
        }
        for (cell, any) in &mut possible {
            if self.uncertain_deletions().any(|delete| delete.has(device, *cell)) {
                any.push(None);
            }
        }
        for row in self.uncertain_rows(device) {
            let last: BTreeMap<_, _> = row.fields.iter().cloned().collect();
            for (field, value) in last.into_iter().filter(|(field, _)| *field != BARE) {
                let cell = (row.ts, KEYS[field as usize]);
                possible.entry(cell).or_insert_with(|| vec![None]).push(Some(value));
            }
        }
        for (cell, any) in possible {
            let value = found.get(&cell).cloned();
            assert!(any.contains(&value), "device {device} {cell:?} holds {value:?}, not one of {any:?}");
        }
        let field = |name: &str| KEYS.iter().position(|of| *of == name).unwrap() as u8;
        let row = |((ts, name), value): ((i64, &str), Value)| RowAction {
            device,
            ts,
            fields: vec![(field(name), value)],
        };
        let mut kept: Vec<RowAction> = found.into_iter().map(row).collect();
        let valued: BTreeSet<i64> = kept.iter().map(|row| row.ts).collect();
        kept.extend(self.check_bare(store, device).difference(&valued).map(|ts| RowAction {
            device,
            ts: *ts,
            fields: vec![(BARE, Value::Bool(true))],
        }));
        kept
    }

    /// The times of the rows that a store has kept: all that were durable, none that nobody wrote.
    fn check_bare(&self, store: &LocalStore, device: u8) -> BTreeSet<i64> {
        let (found, durable) = (times(store, device), times(&self.certain, device));
        let sent = self.uncertain_rows(device).filter(|row| !row.fields.is_empty());
        let sent: BTreeSet<i64> = sent.map(|row| row.ts).collect();
        let is_deleted = |ts: &i64| self.uncertain_deletions().any(|delete| delete.has_row(device, *ts));
        let needed: BTreeSet<i64> = durable.iter().filter(|ts| !is_deleted(ts)).copied().collect();
        assert!(needed.is_subset(&found), "device {device} has rows at {found:?}, not at all of {durable:?}");
        let known: BTreeSet<i64> = durable.union(&sent).copied().collect();
        assert!(found.is_subset(&known), "device {device} has rows at {found:?}, of {known:?}");
        found
    }

    fn compare(&self) {
        for device in 0..DEVICES {
            assert_eq!(content(self.store(), device), content(&self.reference, device), "device {device}");
            let latest = |store: &dyn Store| {
                let series = store.find_series(&key(device));
                series.map(|series| store.latest(series, None).unwrap()).unwrap_or_default()
            };
            assert_eq!(latest(self.store()), latest(&self.reference), "latest of device {device}");
        }
    }

    fn read(&self, order: Order, (from, to): (i64, i64), limit: usize) {
        let at = Timestamp::from_micros;
        for device in 0..DEVICES {
            let rows = |store: &dyn Store| {
                let series = store.find_series(&key(device))?;
                let range = TimeRange::new(at(from), at(to));
                let scan = Scan { order, range, limit, ..scan_all(series, &KEYS[..2]) };
                Some(collect(store, &scan).unwrap()).filter(|rows| !rows.is_empty())
            };
            assert_eq!(rows(self.store()), rows(&self.reference), "device {device}");
        }
    }
}

fn run(options: Options, actions: &[Action]) {
    let mut world = World::new(options);
    for action in actions {
        world.act(action);
    }
    world.compare();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_store_agrees_with_the_reference(actions in prop::collection::vec(action(rows()), 1..60)) {
        run(tiny(), &actions);
    }

    #[test]
    fn also_with_recycled_segments_and_no_room_for_latest_values(actions in prop::collection::vec(action(rows()), 1..60)) {
        let options = Options { preallocate: true, segment_bytes: 1024, latest_series_max: 1, ..tiny() };
        run(options, &actions);
    }

    #[test]
    fn also_with_parts_that_tables_share(actions in prop::collection::vec(action(number_rows()), 1..60)) {
        run(tiny(), &actions);
    }

    #[test]
    fn and_when_they_share_them_only_now_and_then(actions in prop::collection::vec(action(number_rows()), 1..60)) {
        let mut world = World::new(tiny());
        for action in &actions {
            // The next process has it the other way.
            world.options.narrow_parts ^= matches!(action, Action::Close | Action::Kill | Action::PowerCut(_));
            world.act(action);
        }
        world.compare();
    }
}
