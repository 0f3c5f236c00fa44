//! Tests of merges: a merged part reads like its inputs, and no failure during a merge loses a row.

use std::ops::ControlFlow;
use std::sync::Arc;

use model::{SeriesId, SeriesKey, Value};
use parking_lot::Mutex;
use store::conformance::{batch_of, collect, scan_all};
use store::{Durability, Maintenance, MemoryStore, Reader, Store, StoreError};
use store_local::{Compacted, LocalStore, Observer, Options};
use testkit::{FaultyDisk, Survivors};

use crate::support::{eventually, files, keep, numbers, open, tiny, tiny_manual};

const DAY: i64 = 86_400_000_000;

fn device(store: &dyn Store, name: &str) -> SeriesId {
    store.series(&SeriesKey::device("t", name).unwrap()).unwrap()
}

/// Collects the reports of the store about merges.
#[derive(Default)]
struct Told {
    compacted: Mutex<Vec<Compacted>>,
    damaged: Mutex<Vec<StoreError>>,
}

impl Observer for Told {
    fn synced(&self, _duration: std::time::Duration, _bytes: u64, _rows: u64) {}

    fn compacted(&self, compacted: &Compacted) {
        self.compacted.lock().push(*compacted);
    }

    fn damaged(&self, error: &StoreError) {
        self.damaged.lock().push(error.clone());
    }
}

fn told(options: Options) -> (Arc<Told>, Options) {
    let told = Arc::new(Told::default());
    (told.clone(), Options { observer: Some(told), ..options })
}

/// Writes `count` parts of one day. Each has a row of its own, and a row that all of them write.
fn make_parts(store: &LocalStore, name: &str, day: i64, count: i64) {
    let series = device(store, name);
    for n in 0..count {
        keep(store, series, day * DAY + 10 + n, n).unwrap();
        keep(store, series, day * DAY, n).unwrap();
        store.flush().unwrap();
    }
}

fn expected(day: i64, count: i64) -> Vec<(i64, i64)> {
    std::iter::once((day * DAY, count - 1)).chain((0..count).map(|n| (day * DAY + 10 + n, n))).collect()
}

#[test]
fn values_of_all_types_keep_their_newest_writes() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let reference = MemoryStore::new();
    let keys = ["a", "b", "ts", "a:string"];
    for round in 0..30_i64 {
        for name in ["d", "e", "f"] {
            for store in [&store as &dyn Store, &reference] {
                let series = device(store, name);
                for n in 0..7 {
                    // Some rows are new; others were written before, in parts or in this batch.
                    let ts = (round * 5 + n * n) % 40 + (round + n) % 3 * DAY;
                    let values = [
                        Value::I64(round * n),
                        Value::String(format!("{round} {n}")),
                        Value::F64(round as f64 / 7.0),
                        Value::Bool(n % 2 == 0),
                        Value::Json(format!("[{n}]")),
                    ];
                    let pick = |of: i64| (keys[(of % 4) as usize], values[(of % 5) as usize].clone());
                    let fields = [pick(round + n), pick(round * n + 1)];
                    store.append(&batch_of(series, &[(ts, &fields)]), Durability::Memory).unwrap();
                }
            }
        }
        store.flush().unwrap();
        if round % 4 == 3 {
            store.compact().unwrap();
        }
    }
    let parts = store.status().parts;
    assert!(parts < 30, "{parts} parts of 90");
    let check = |store: &LocalStore| {
        for name in ["d", "e", "f"] {
            let (ours, theirs) = (device(store, name), device(&reference, name));
            let rows = collect(&reference, &scan_all(theirs, &keys)).unwrap();
            assert_eq!(collect(store, &scan_all(ours, &keys)).unwrap(), rows);
            assert_eq!(store.latest(ours, None).unwrap(), reference.latest(theirs, None).unwrap());
        }
    };
    check(&store);
    assert_eq!(files(&disk, ".parquet").len() as u64, parts, "dropped parts are removed");
    drop(store);
    let (store, report) = open(&disk.reboot(Survivors::Synced), tiny_manual()).unwrap();
    assert!(report.damages.is_empty() && report.orphans.is_empty(), "{report:?}");
    check(&store);
}

#[test]
fn a_store_merges_by_itself_and_tells() {
    let disk = FaultyDisk::new();
    let (told, options) = told(Options { memtable_flush_bytes: usize::MAX, ..tiny() });
    let (store, _) = open(&disk, options).unwrap();
    make_parts(&store, "d", 0, 20);
    eventually(|| (store.status().parts < 6).then_some(()));
    assert_eq!(numbers(&store, device(&store, "d")).unwrap(), expected(0, 20));
    store.close().unwrap();
    let compacted = told.compacted.lock();
    let (inputs, outputs) = compacted.iter().fold((0, 0), |(i, o), one| (i + one.inputs, o + one.outputs));
    assert_eq!(20 + outputs - inputs, store.status().parts);
    assert!(compacted.iter().all(|one| one.rows > 0 && one.bytes_written > 0 && one.bytes_read > 0));
}

/// The parts that a reader uses stay until it ends.
#[test]
fn a_read_continues_while_its_parts_are_merged() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    make_parts(&store, "d", 0, 3);
    make_parts(&store, "d", 1, 3);
    let series = device(&store, "d");
    let mut found = Vec::new();
    store
        .scan(&scan_all(series, &["n"]), &mut |row| {
            if found.is_empty() {
                store.compact().unwrap();
                assert_eq!(store.status().parts, 2);
                // The reader has not opened the parts of the second day yet.
                assert!(files(&disk, ".parquet").len() >= 5, "{:?}", disk.paths());
            }
            found.push(row.ts.micros());
            ControlFlow::Continue(())
        })
        .unwrap();
    let all = [expected(0, 3), expected(1, 3)].concat();
    assert_eq!(found, all.iter().map(|(ts, _)| *ts).collect::<Vec<_>>());
    store.compact().unwrap();
    assert_eq!(files(&disk, ".parquet").len(), 2);
    assert_eq!(numbers(&store, series).unwrap(), all);
}

#[test]
fn a_damaged_part_is_left_alone_and_the_others_are_merged() {
    let filled = FaultyDisk::new();
    {
        let (store, _) = open(&filled, tiny_manual()).unwrap();
        make_parts(&store, "d", 0, 7);
        make_parts(&store, "e", 1, 3);
        store.close().unwrap();
    }
    let parts = files(&filled, ".parquet");
    let bytes = filled.content(&parts[3]);
    for position in (0..bytes.len()).step_by(7) {
        let disk = filled.reboot(Survivors::Synced);
        let mut flipped = bytes.clone();
        flipped[position] ^= 0x10;
        disk.set_content(&parts[3], flipped.clone());
        let (told, options) = told(tiny_manual());
        let (store, _) = open(&disk, options).unwrap();
        store.compact().unwrap();
        // Three before it, itself, three after it; and the other day.
        assert_eq!(store.status().parts, 4, "byte {position}");
        assert_eq!(disk.content(&parts[3]), flipped, "it is neither removed nor made to look whole");
        let damaged = told.damaged.lock();
        assert!(
            matches!(&damaged[..], [StoreError::Corrupt { path, .. }] if *path == parts[3]),
            "byte {position}: {damaged:?}"
        );
        let refused = numbers(&store, device(&store, "d")).unwrap_err();
        assert!(matches!(&refused, StoreError::Corrupt { path, .. } if *path == parts[3]), "{refused}");
        assert_eq!(numbers(&store, device(&store, "e")).unwrap(), expected(1, 3));
    }
}

#[test]
fn a_part_deleted_by_hand_is_named_and_the_rest_continues() {
    let disk = FaultyDisk::new();
    let (told, options) = told(tiny_manual());
    let (store, _) = open(&disk, options.clone()).unwrap();
    make_parts(&store, "d", 0, 3);
    make_parts(&store, "e", 1, 3);
    store.close().unwrap();
    drop(store);
    let gone = files(&disk, ".parquet").remove(1);
    disk.delete(&gone);
    let (store, report) = open(&disk, options).unwrap();
    assert!(report.damages.iter().any(|damage| damage.to_string().contains(&*gone.to_string_lossy())));
    store.compact().unwrap();
    assert_eq!(store.status().parts, 4, "three of the first day, one of the second");
    let refused = numbers(&store, device(&store, "d")).unwrap_err();
    assert!(refused.to_string().contains(&*gone.to_string_lossy()), "{refused}");
    assert!(told.damaged.lock()[0].to_string().contains(&*gone.to_string_lossy()));
    assert_eq!(numbers(&store, device(&store, "e")).unwrap(), expected(1, 3));
    keep(&store, device(&store, "d"), 5 * DAY, 5).unwrap();
    store.flush().unwrap();
}

#[test]
fn a_full_disk_makes_a_merge_give_up_and_try_again() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    make_parts(&store, "d", 0, 4);
    let series = device(&store, "d");
    let (used, parts) = (disk.used_bytes(), files(&disk, ".parquet"));
    // Space for rows, but not for a part.
    disk.set_capacity(Some(used + 1_000));
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| store.compact());
        let operations = disk.operations();
        eventually(|| (disk.operations() > operations + 20).then_some(()));
        for n in 0..3 {
            keep(&store, series, 100 + n, n).unwrap();
        }
        assert_eq!(store.status().busy, None, "a merge that waits for space stops nobody");
        assert_eq!((store.status().parts, store.status().sealed), (4, None));
        disk.set_capacity(None);
        compaction.join().unwrap().unwrap();
    });
    assert_eq!(store.status().parts, 1);
    assert!(files(&disk, ".parquet").iter().all(|path| !parts.contains(path)));
    assert_eq!(files(&disk, ".tmp"), Vec::<std::path::PathBuf>::new());
    let rows = [expected(0, 4), vec![(100, 0), (101, 1), (102, 2)]].concat();
    assert_eq!(numbers(&store, series).unwrap(), rows);
}

/// Each operation of a merge fails once with a transient error. The merge fails or succeeds, and no row is lost.
#[test]
fn a_lack_of_space_descriptors_or_memory_at_any_operation_costs_no_row() {
    for errno in [libc::ENOSPC, libc::EDQUOT, libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
        merge_and_fail_once_with(errno);
    }
}

fn merge_and_fail_once_with(errno: i32) {
    let filled = FaultyDisk::new();
    {
        let (store, _) = open(&filled, tiny_manual()).unwrap();
        make_parts(&store, "d", 0, 4);
        store.close().unwrap();
    }
    let mut failed = 0;
    for after in 0.. {
        let disk = filled.reboot(Survivors::Synced);
        let (store, _) = open(&disk, tiny_manual()).unwrap();
        let at = disk.operations() + after;
        disk.fail_at(at, errno);
        let compacted = store.compact();
        let reached = disk.operations() > at;
        // A sync that fails for lack of space seals the store like any other failed sync.
        assert!(compacted.is_ok() || store.status().sealed.is_some(), "{after}: {compacted:?}");
        assert_eq!(numbers(&store, device(&store, "d")).unwrap(), expected(0, 4), "{after}");
        drop(store);
        for survivors in [Survivors::All, Survivors::Synced, Survivors::Random(after)] {
            let (store, report) = open(&disk.reboot(survivors), tiny_manual()).unwrap();
            assert!(report.damages.is_empty(), "{after}: {report:?}");
            assert_eq!(numbers(&store, device(&store, "d")).unwrap(), expected(0, 4), "{after}");
        }
        if !reached {
            break;
        }
        failed += 1;
    }
    assert!(failed > 8, "{failed} operations");
}
