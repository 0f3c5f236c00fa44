//! Today's code opens the files of every format version there was. Written by `examples/fixture.rs`.

use std::path::Path;
use std::sync::Arc;

use model::{SeriesKey, Value};
use store::Store;
use store::conformance::{collect, scan_all};
use store_local::{LocalStore, Options, RealDisk};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn files_of_version_1_are_read() {
    let dir = tempfile::tempdir().unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v1"), dir.path());
    let options = Options { preallocate: false, ..Options::default() };
    let (store, report) = LocalStore::open(Arc::new(RealDisk), dir.path(), options).unwrap();
    assert!(report.clean_shutdown && report.damages.is_empty(), "{report:?}");
    assert_eq!((report.parts, report.rows, report.series), (3, 6, 2));

    let van = SeriesKey::new("telemetry", &[("device", "van1"), ("site", "köln")]).unwrap();
    let van = store.find_series(&van).unwrap();
    let rows = collect(&store, &scan_all(van, &["speed", "rpm", "ok", "ts", "place"])).unwrap();
    let expected: Vec<_> = (0..5_i64)
        .map(|round| {
            let values = vec![
                Some(Value::F64(50.0 + round as f64 / 2.0)),
                Some(Value::I64(1_500 - round)),
                Some(Value::Bool(round % 2 == 0)),
                Some(Value::String("not the time".into())),
                None,
            ];
            (1_700_000_000_000_000 + round * 40_000_000_000, values)
        })
        .collect();
    assert_eq!(rows, expected);

    let bus = store.find_series(&SeriesKey::device("telemetry", "bus").unwrap()).unwrap();
    let latest = store.latest(bus, None).unwrap();
    let found: Vec<_> =
        latest.iter().map(|latest| (latest.key.as_str(), latest.ts.micros(), &latest.value)).collect();
    let place = Value::Json(r#"{"lat":50.9,"lon":6.9}"#.into());
    assert_eq!(found, [("place", 4, &place), ("speed", 4, &Value::String("fast".into()))]);
}
