//! Tests that a process reads the rows that an earlier one has written.

use std::path::Path;
use std::sync::Arc;

use model::{Namespace, SeriesKey, TableName, Value};
use parquet::file::reader::{FileReader, SerializedFileReader};
use store::conformance::{self, batch_of, collect, scan_all, wait};
use store::{Durability, Maintenance, Reader, StoreError, Writer};
use store_local::{LocalStore, Options, RealDisk, RecoveryReport};

fn open(dir: &Path) -> (LocalStore, RecoveryReport) {
    let options = Options { preallocate: false, ..Options::default() };
    LocalStore::open(Arc::new(RealDisk), dir, options).unwrap()
}

#[test]
fn rows_series_and_latest_survive_close_and_crash() {
    let dir = tempfile::tempdir().unwrap();
    let key = SeriesKey::new("t", &[("device", "a"), ("site", "x")]).unwrap();
    for round in 0..4_i64 {
        let (store, report) = open(dir.path());
        assert_eq!(report.rows, round as u64);
        assert_eq!(report.clean_shutdown, round % 2 == 0);
        let series = store.series(&key).unwrap();
        let rows: &[(i64, &[(&str, Value)])] =
            &[(round, &[("n", Value::I64(round)), ("s", Value::String("x".into()))])];
        let ticket = store.append(&batch_of(series, rows), Durability::Fsync).unwrap();
        assert_eq!(ticket, round as u64 + 1);
        wait(&store, Durability::Fsync, ticket);
        let found = collect(&store, &scan_all(series, &["n"])).unwrap();
        assert_eq!(found.iter().map(|(ts, _)| *ts).collect::<Vec<_>>(), (0..=round).collect::<Vec<_>>());
        let latest = store.latest(series, None).unwrap();
        assert_eq!((latest.len(), &latest[0].value), (2, &Value::I64(round)));
        if round % 2 == 1 {
            store.close().unwrap();
        }
    }
}

#[test]
fn a_second_instance_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, _) = open(dir.path());
    let second = LocalStore::open(Arc::new(RealDisk), dir.path(), Options::default()).err().unwrap();
    let StoreError::InUse { holder, .. } = second else { panic!("{second}") };
    assert_eq!(holder, format!("process {}", std::process::id()));
}

#[test]
fn namespaces_survive_in_log_parts_and_footers() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = TableName::new(&Namespace::new("elsewhere").unwrap(), "t").unwrap();
    let tables = [conformance::table("t"), elsewhere];
    for round in 0..3_i64 {
        let (store, _) = open(dir.path());
        for (table, value) in tables.iter().zip([1, 2]) {
            let series = store.series(&SeriesKey::device(table, "a").unwrap()).unwrap();
            let values: &[(&str, Value)] = &[("n", Value::I64(value)), ("s", Value::String("x".into()))];
            wait(
                &store,
                Durability::Fsync,
                store.append(&batch_of(series, &[(round, values)]), Durability::Fsync).unwrap(),
            );
            let found = collect(&store, &scan_all(series, &["n"])).unwrap();
            assert_eq!(found.len(), round as usize + 1);
            assert!(found.iter().all(|(_, values)| values[0] == Some(Value::I64(value))));
        }
        if round == 1 {
            store.flush().unwrap();
        }
    }
    let mut namespaces = Vec::new();
    for part in std::fs::read_dir(dir.path().join("parts")).unwrap() {
        let file = std::fs::File::open(part.unwrap().path()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone());
        assert_eq!(value("tachograph.table").as_deref(), Some("t"));
        namespaces.push(value("tachograph.namespace"));
    }
    namespaces.sort();
    assert_eq!(namespaces, [None, Some("elsewhere".to_owned())]);
}
