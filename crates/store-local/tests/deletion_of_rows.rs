//! Rows, series and tables that are deleted: what files, later processes and limits know of them afterwards.

use std::ops::ControlFlow;

use model::limits::DELETIONS_PER_TABLE_MAX;
use model::{SeriesId, SeriesKey, TimeRange, Timestamp, Value};
use store::conformance::{self, batch_of, collect_table, read_all};
use store::{Deletion, Durability, Maintenance, Reader, SeriesSet, StoreError, Writer};
use store_local::{LocalStore, Options};
use testkit::{FaultyDisk, Survivors};

use crate::support::{eventually, files, keep, numbers, open, reached, tiny, tiny_manual};

fn series(store: &LocalStore, table: &str, device: &str) -> SeriesId {
    store.series(&SeriesKey::device(table, device).unwrap()).unwrap()
}

/// Deletes rows, or values of keys, and waits until that is durable.
fn delete(store: &LocalStore, series: SeriesId, (start, end): (i64, i64), keys: Option<&[&str]>) {
    let range = TimeRange::new(Timestamp::from_micros(start), Timestamp::from_micros(end));
    let keys = keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
    let deletion = Deletion { keys, ..Deletion::of_series(series, range).unwrap() };
    let sequence = store.delete_rows(&deletion, Durability::Fsync).unwrap();
    assert!(reached(store, Durability::Fsync, sequence));
}

fn times(store: &LocalStore, series: SeriesId) -> Vec<i64> {
    numbers(store, series).unwrap().into_iter().map(|(ts, _)| ts).collect()
}

/// The rows of a table, with values or without.
fn rows(store: &LocalStore, table: &str) -> usize {
    let snapshot = store.snapshot(&conformance::table(table)).unwrap().unwrap();
    collect_table(snapshot.as_ref(), &read_all(snapshot.as_ref())).unwrap().concat().len()
}

fn in_parts(disk: &FaultyDisk, text: &str) -> bool {
    let has = |path| disk.content(path).windows(text.len()).any(|bytes| bytes == text.as_bytes());
    files(disk, ".parquet").iter().any(|path| has(path))
}

fn check_whole(store: &LocalStore) {
    let report = store.check(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn a_compaction_on_command_leaves_no_byte_of_deleted_rows() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let device = series(&store, "t", "d");
    for ts in 0..4 {
        let text = if ts == 2 { "secret of the past" } else { "known to all" };
        let fields = [("n", Value::I64(ts)), ("text", Value::String(text.into()))];
        let sequence = store.append(&batch_of(device, &[(ts, &fields)]), Durability::Fsync).unwrap();
        assert!(reached(&store, Durability::Fsync, sequence));
    }
    store.flush().unwrap();
    delete(&store, device, (2, 3), None);
    assert!(in_parts(&disk, "secret of the past"));
    assert_eq!((times(&store, device), store.status().deletions), (vec![0, 1, 3], 1));
    store.compact().unwrap();
    assert_eq!(store.status().deletions, 1, "the manifest does not have it yet");
    store.flush().unwrap();
    check_whole(&store);
    store.compact().unwrap();
    assert!(!in_parts(&disk, "secret of the past") && in_parts(&disk, "known to all"));
    assert_eq!((times(&store, device), store.status().deletions), (vec![0, 1, 3], 0));
    assert_eq!(store.tables().unwrap()[0].rows, 3);
    check_whole(&store);
    drop(store);
    let (store, report) = open(&disk, tiny_manual()).unwrap();
    assert!(report.damages.is_empty(), "{report:?}");
    assert_eq!((times(&store, device), store.status().deletions), (vec![0, 1, 3], 0));
}

#[test]
fn a_part_without_rows_is_not_a_part() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    for table in ["t", "u"] {
        keep(&store, series(&store, table, "d"), 1, Value::F64(1.0)).unwrap();
    }
    store.flush().unwrap();
    keep(&store, series(&store, "t", "d"), 2, 2).unwrap();
    for table in ["t", "u"] {
        delete(&store, series(&store, table, "d"), (0, 9), None);
    }
    store.flush().unwrap();
    store.compact().unwrap();
    assert_eq!(files(&disk, ".parquet"), [] as [std::path::PathBuf; 0]);
    assert_eq!((store.status().parts, store.status().deletions, rows(&store, "t")), (0, 0, 0));
    keep(&store, series(&store, "t", "d"), 1, 7).unwrap();
    drop(store);
    let (store, report) = open(&disk, tiny_manual()).unwrap();
    assert!(report.damages.is_empty(), "{report:?}");
    assert_eq!(numbers(&store, series(&store, "t", "d")).unwrap(), [(1, 7)]);
    check_whole(&store);
}

/// The deletion is in the log, then in the manifest, then in parts.
#[test]
fn deleted_rows_come_back_in_no_later_process() {
    let mut disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let device = series(&store, "t", "d");
    for ts in 0..3 {
        keep(&store, device, ts, ts).unwrap();
    }
    store.flush().unwrap();
    for ts in 3..6 {
        keep(&store, device, ts, ts).unwrap();
    }
    delete(&store, device, (1, 5), None);
    keep(&store, device, 2, 22).unwrap();
    let mut store = store;
    for step in ["in the log", "in the manifest", "in parts"] {
        disk = disk.reboot(Survivors::Synced);
        drop(store);
        let (again, report) = open(&disk, tiny_manual()).unwrap();
        assert!(report.damages.is_empty(), "{step}: {report:?}");
        assert_eq!(numbers(&again, device).unwrap(), [(0, 0), (2, 22), (5, 5)], "{step}");
        assert_eq!(again.latest(device, None).unwrap()[0].ts.micros(), 5, "{step}");
        match step {
            "in the log" => again.flush().unwrap(),
            _ => again.compact().unwrap(),
        }
        check_whole(&again);
        store = again;
    }
    assert_eq!(store.status().deletions, 0);
}

#[test]
fn rows_of_tables_that_share_parts_stay_when_their_value_is_deleted() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    for round in 0..3 {
        for table in ["t", "u", "v"] {
            for ts in 0..4 {
                keep(&store, series(&store, table, "d"), 10 * round + ts, Value::F64(0.5)).unwrap();
            }
        }
        store.flush().unwrap();
    }
    let [t, u, v] = ["t", "u", "v"].map(|table| series(&store, table, "d"));
    delete(&store, u, (1, 12), Some(&["n"]));
    delete(&store, v, (0, 99), Some(&["n"]));
    delete(&store, t, (3, 20), None);
    keep(&store, u, 2, Value::F64(2.0)).unwrap();
    for step in ["deleted", "flushed", "compacted", "opened"] {
        let found = [t, u, v].map(|series| times(&store, series));
        let expected = [vec![0, 1, 2, 20, 21, 22, 23], vec![0, 2, 12, 13, 20, 21, 22, 23], vec![]];
        assert_eq!(found, expected, "{step}");
        assert_eq!(["t", "u", "v"].map(|table| rows(&store, table)), [7, 12, 12], "{step}");
        check_whole(&store);
        match step {
            "deleted" => store.flush().unwrap(),
            "flushed" => store.compact().unwrap(),
            _ => {}
        }
        if step == "compacted" {
            assert_eq!(store.status().deletions, 0);
        }
    }
}

#[test]
fn a_snapshot_keeps_its_rows_through_flush_and_compaction() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let device = series(&store, "t", "d");
    for ts in 0..4 {
        keep(&store, device, ts, ts).unwrap();
        if ts == 1 {
            store.flush().unwrap();
        }
    }
    let before = store.snapshot(&conformance::table("t")).unwrap().unwrap();
    delete(&store, device, (0, 4), None);
    store.flush().unwrap();
    store.compact().unwrap();
    let found = collect_table(before.as_ref(), &read_all(before.as_ref())).unwrap().concat();
    assert_eq!((found.len(), rows(&store, "t")), (4, 0));
}

#[test]
fn too_many_deletions_wait_until_files_are_rewritten() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, Options { compact: false, ..tiny() }).unwrap();
    let device = series(&store, "t", "d");
    let request = |ts| {
        let range = TimeRange::new(Timestamp::from_micros(ts), Timestamp::from_micros(ts + 1));
        store.delete_rows(&Deletion::of_series(device, range).unwrap(), Durability::Memory)
    };
    for ts in 0..=DELETIONS_PER_TABLE_MAX as i64 {
        keep(&store, device, ts, ts).unwrap();
    }
    store.flush().unwrap();
    for ts in 0..DELETIONS_PER_TABLE_MAX as i64 {
        request(ts).unwrap();
    }
    let last = DELETIONS_PER_TABLE_MAX as i64;
    let refused = request(last);
    assert!(
        matches!(&refused, Err(StoreError::Busy { reason }) if reason.contains("table t")),
        "{refused:?}"
    );
    assert_eq!(times(&store, device), [last]);
    store.flush().unwrap();
    store.compact().unwrap();
    request(last).unwrap();
    assert_eq!(times(&store, device), [0_i64; 0]);
}

#[test]
fn old_deletions_are_applied_without_a_command() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny()).unwrap();
    let device = series(&store, "t", "d");
    keep(&store, device, 1, 1).unwrap();
    keep(&store, device, 2, 2).unwrap();
    store.flush().unwrap();
    delete(&store, device, (1, 2), None);
    let other = series(&store, "other", "d");
    for ts in 0..40 {
        keep(&store, other, ts, ts).unwrap();
    }
    store.flush().unwrap();
    eventually(|| (store.status().deletions == 0).then_some(()));
    assert_eq!(store.tables().unwrap().iter().find(|of| of.table.name() == "t").unwrap().rows, 1);
    assert_eq!(times(&store, device), [2]);
}

/// The end of the series is in the log, then in the manifest.
#[test]
fn a_deleted_series_comes_back_in_no_later_process() {
    let mut disk = FaultyDisk::new();
    let (mut store, _) = open(&disk, tiny_manual()).unwrap();
    let key = SeriesKey::device("t", "d").unwrap();
    for (ts, device) in [(1, "d"), (2, "other")] {
        keep(&store, series(&store, "t", device), ts, ts).unwrap();
    }
    store.flush().unwrap();
    let first = series(&store, "t", "d");
    keep(&store, first, 3, 3).unwrap();
    let ticket = store.delete_series(&SeriesSet::from_iter([first.0 as u32]), Durability::Fsync).unwrap();
    assert!(reached(&store, Durability::Fsync, ticket));
    for step in ["in the log", "in the manifest", "in parts"] {
        disk = disk.reboot(Survivors::Synced);
        drop(store);
        let (again, report) = open(&disk, tiny_manual()).unwrap();
        assert!(report.damages.is_empty() && report.series == 1, "{step}: {report:?}");
        assert_eq!(again.find_series(&key), None, "{step}");
        assert!(matches!(again.latest(first, None), Err(StoreError::UnknownSeries(_))), "{step}");
        assert_eq!((rows(&again, "t"), again.status().series), (1, 1), "{step}");
        match step {
            "in the log" => again.flush().unwrap(),
            _ => again.compact().unwrap(),
        }
        check_whole(&again);
        store = again;
    }
    assert_eq!(store.status().deletions, 0);
    let second = series(&store, "t", "d");
    assert!(second != first && keep(&store, second, 9, 9).is_some());
    store.flush().unwrap();
    drop(store);
    let (store, report) = open(&disk, tiny_manual()).unwrap();
    assert!(report.damages.is_empty(), "{report:?}");
    assert_eq!(numbers(&store, second).unwrap(), [(9, 9)]);
    assert_eq!(store.find_series(&key), Some(second));
}

#[test]
fn a_dropped_table_leaves_no_byte_and_its_name_is_free() {
    let disk = FaultyDisk::new();
    let options = Options { tables_max: 3, ..tiny_manual() };
    let (store, _) = open(&disk, options.clone()).unwrap();
    let secret = || Value::String("secret of the past".into());
    for table in ["t", "metric", "kept"] {
        let value = if table == "t" { secret() } else { Value::F64(0.5) };
        let of = series(&store, table, "d");
        for ts in 0..2 {
            let sequence = store.append(&batch_of(of, &[(ts, &[("n", value.clone())])]), Durability::Fsync);
            assert!(reached(&store, Durability::Fsync, sequence.unwrap()));
            if ts == 0 {
                store.flush().unwrap();
            }
        }
    }
    assert!(in_parts(&disk, "secret of the past"));
    assert!(
        store.drop_table(&conformance::table("t")).unwrap()
            && store.drop_table(&conformance::table("metric")).unwrap()
    );
    store.compact().unwrap();
    assert!(!in_parts(&disk, "secret of the past"), "the edit has dropped the part");
    store.flush().unwrap();
    store.compact().unwrap();
    assert!(!in_parts(&disk, "metric") && !in_parts(&disk, "secret of the past"));
    check_whole(&store);
    keep(&store, series(&store, "t", "d"), 7, 7).unwrap();
    drop(store);
    for _ in 0..2 {
        let (store, report) = open(&disk, options.clone()).unwrap();
        assert!(report.damages.is_empty(), "{report:?}");
        let names: Vec<String> =
            store.tables().unwrap().into_iter().map(|of| of.table.name().to_owned()).collect();
        assert_eq!(names, ["kept", "t"]);
        assert_eq!((rows(&store, "t"), rows(&store, "kept")), (1, 2));
        assert_eq!(numbers(&store, series(&store, "t", "d")).unwrap(), [(7, 7)]);
        store.flush().unwrap();
        check_whole(&store);
    }
}
