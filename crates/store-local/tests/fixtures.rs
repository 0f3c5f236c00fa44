//! Opens files that an earlier build wrote. `examples/fixture.rs` has written them.

use std::path::Path;
use std::sync::Arc;

use model::{SeriesKey, Value};
use store::conformance::{collect, collect_table, read_all, scan_all};
use store::{Maintenance, Reader, conformance};
use store_local::{LocalStore, Options, RealDisk, RecoveryReport};

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

/// Opens a copy of the fixture of a version.
fn fixture(version: &str) -> (tempfile::TempDir, LocalStore, RecoveryReport) {
    let dir = tempfile::tempdir().unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(version), dir.path());
    let (store, report) = open(dir.path());
    assert!(report.clean_shutdown && report.damages.is_empty(), "{report:?}");
    (dir, store, report)
}

fn open(dir: &Path) -> (LocalStore, RecoveryReport) {
    let options = Options { preallocate: false, ..Options::default() };
    LocalStore::open(Arc::new(RealDisk), dir, options).unwrap()
}

/// Every type, tables that share parts, a key that was dropped and came again, and what was deleted. `examples/fixture.rs`
/// has a function for each.
#[test]
fn files_of_version_5_are_read() {
    let (dir, store, report) = fixture("v5");
    assert_eq!((report.parts, report.series), (14, 10));
    let tables = store.tables().unwrap();
    let metrics = tables.iter().filter(|table| table.table.name().starts_with("sys."));
    let found: Vec<_> = metrics.map(|table| (table.table.name(), table.points)).collect();
    assert_eq!(found, [("sys.cpu", Some(10)), ("sys.load", Some(7))]);
    for step in ["opened", "flushed", "compacted"] {
        check_vehicles(&store);
        check_metrics(&store, step);
        check_numbers(&store, step);
        check_dropped(&store, step);
        let found = |device: &str| {
            let series = store.find_series(&SeriesKey::device("deleted", device).unwrap()).unwrap();
            collect(&store, &scan_all(series, &["a", "b"])).unwrap()
        };
        let row = |ts: i64, a: Option<i64>| (ts, vec![a.map(Value::I64), Some(Value::Bool(true))]);
        assert_eq!(found("probe"), [row(1, None), row(2, Some(2)), row(3, Some(3))], "{step}");
        assert_eq!(found("gone"), [0, 1, 2, 3].map(|ts| row(ts, Some(ts))), "{step}");
        assert!(store.snapshot(&conformance::table("dropped table")).unwrap().is_none(), "{step}");
        match step {
            "opened" => store.flush().unwrap(),
            "flushed" => store.compact().unwrap(),
            _ => {}
        }
    }
    assert_eq!(store.status().deletions, 0);
    store.close().unwrap();
    drop(store);
    assert!(open(dir.path()).1.damages.is_empty());
}

/// A file of a version from before the first release is refused and stays as it is. The message names the commit that reads
/// it.
#[test]
fn files_of_older_and_newer_versions_are_refused() {
    let manifest = |version: u32| ("manifest", version, 12, "this program knows version 5");
    let log = |version: u32| ("log/0000000000000001.log", version, 60, "this program knows version 4");
    for (name, version, crc_at, known) in [manifest(1), manifest(4), manifest(6), log(1), log(3), log(5)] {
        let dir = tempfile::tempdir().unwrap();
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v5"), dir.path());
        let path = dir.path().join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..crc_at]);
        bytes[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let options = Options { preallocate: false, ..Options::default() };
        let refused = LocalStore::open(Arc::new(RealDisk), dir.path(), options);
        let refused = refused.map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains(known), "{refused}");
        assert!(refused.contains(&format!("format version {version},")), "{refused}");
        let way = if version < 5 { "commit ad6acc8b" } else { "the newer program" };
        assert!(refused.contains(way), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}");
    }
}

/// See `numbers` in `examples/fixture.rs`.
pub(crate) fn check_numbers(store: &LocalStore, step: &str) {
    let snapshot = store.snapshot(&conformance::table("numbers")).unwrap().unwrap();
    let schema = snapshot.columns().schema();
    let names: Vec<&str> = schema.fields().iter().skip(2).map(|field| field.name().as_str()).collect();
    let expected = [
        "integer_first",
        "integer_first:i64",
        "float_first",
        "float_first:i64",
        "text_first:f64",
        "text_first:f64:i64",
        "text_first",
    ];
    assert_eq!(names, expected, "{step}");
    let rows = collect_table(snapshot.as_ref(), &read_all(snapshot.as_ref())).unwrap().concat();
    // The number, and its exact value if it is an integer.
    let number = |is_float: bool, n: i64| {
        let integer = 9_007_199_254_740_993 + n;
        match is_float {
            true => [Some(Value::F64(n as f64 + 0.5)), None],
            false => [Some(Value::F64(integer as f64)), Some(Value::I64(integer))],
        }
    };
    let row = |round: i64| {
        let mut row = vec![
            Some(Value::String("probe".into())),
            Some(Value::I64(1_700_000_000_000_000 + round * 10_000_000)),
        ];
        row.extend(number(round % 2 == 1, round));
        row.extend(number(round % 2 == 0, round));
        row.extend(if round == 0 { [None, None] } else { number(round > 2, round) });
        row.push((round == 0).then(|| Value::String("n/a".into())));
        row
    };
    assert_eq!(rows, (0..5).map(row).collect::<Vec<_>>(), "{step}");
}

fn check_metrics(store: &LocalStore, step: &str) {
    for (table, host, divisor) in
        [("sys.cpu", "web2", 4.0), ("third", "web1", 3.0), ("sys.load", "web1", 4.0)]
    {
        let series = store.find_series(&SeriesKey::new(table, &[("host", host)]).unwrap()).unwrap();
        let rows = collect(store, &scan_all(series, &["value", "note"])).unwrap();
        let note = |round: i64| (table == "sys.load" && round > 2).then(|| Value::String("busy".into()));
        let row = |round: i64| {
            let ts = 1_700_000_000_000_000 + round * 10_000_000;
            (ts, vec![Some(Value::F64(round as f64 / divisor)), note(round)])
        };
        assert_eq!(rows, (0..5).map(row).collect::<Vec<_>>(), "{table} {step}");
    }
}

fn check_dropped(store: &LocalStore, step: &str) {
    let snapshot = store.snapshot(&conformance::table("dropped")).unwrap().unwrap();
    let fields = &snapshot.columns().fields;
    let names: Vec<&str> = fields.iter().map(|field| &*field.column).collect();
    assert_eq!(names, ["speed"], "{step}");
    let series = store.find_series(&SeriesKey::device("dropped", "probe").unwrap()).unwrap();
    let rows = collect(store, &scan_all(series, &["speed"])).unwrap();
    assert_eq!(rows, [(2, vec![Some(Value::F64(1.5))])], "{step}");
}

fn check_vehicles(store: &LocalStore) {
    let van = SeriesKey::new("telemetry", &[("device", "van1"), ("site", "köln")]).unwrap();
    let van = store.find_series(&van).unwrap();
    let rows = collect(store, &scan_all(van, &["speed", "rpm", "ok", "ts", "place"])).unwrap();
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
