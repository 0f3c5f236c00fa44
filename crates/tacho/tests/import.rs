//! `tacho import`, end to end.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::tacho::{Server, run, text};

const START: &str = "2024-05-01T08:00:00Z";
const START_MS: i64 = 1_714_550_400_000;

fn file(directory: &Path, name: &str, content: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

/// A server with the device `car`.
fn server(directory: &Path) -> Server {
    let data = directory.join("data");
    run(&["device", "add", "car", "--data", text(&data)]).ok();
    Server::start(&data)
}

#[test]
fn files_are_imported_in_order_and_every_cell_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path());
    let data = text(&server.data);
    let first = file(
        directory.path(),
        "1.csv",
        "RPM (),SPEED (km/h),STATE ()\r\n0.000000, 0, off,\r\n800.5, , on,\r\n",
    );
    let second = file(directory.path(), "2.csv", "RPM (),SPEED (km/h),STATE ()\n900.25,12,on\n");
    let printed =
        run(&["import", "--device", "car", "--start", START, "--data", data, text(&first), text(&second)])
            .ok();
    for part in [
        "1.csv: 2 rows with 5 values imported",
        "2 of the cells are text",
        "units: SPEED in km/h",
        "empty: 1 cells, 2 cells after a delimiter at the end of a row",
        "stored as \"car\" in telemetry: 3 rows from 2024-05-01T08:00:00Z to 2024-05-01T08:00:02Z",
        "imported  3 rows with 8 values of 1 devices, 0 rows skipped",
        "read back: all 8 values of 3 keys are there",
    ] {
        assert!(printed.contains(part), "{part}\nis missing in\n{printed}");
    }
    let api = server.api();
    let expected =
        [(START_MS, json!(0.0)), (START_MS + 1_000, json!(800.5)), (START_MS + 2_000, json!(900.25))];
    assert_eq!(api.history("car", "RPM"), expected);
    assert_eq!(api.history("car", "SPEED"), [(START_MS, json!(0)), (START_MS + 2_000, json!(12))]);
    assert_eq!(api.history("car", "STATE")[0].1, json!("off"));
}

#[test]
fn times_from_a_column_and_a_repeated_one() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path());
    let rows = "time,a,b\n1714550400000,1,x\n1714550401000,2,\n1714550400000,3,\n";
    let rows = file(directory.path(), "t.csv", rows);
    let arguments = [
        "import",
        "--device",
        "car",
        "--ts-column",
        "time",
        "--ts-format",
        "ms",
        "--data",
        text(&server.data),
    ];
    let printed = run(&[&arguments[..], &[text(&rows)]].concat()).ok();
    assert!(printed.contains("1 rows share tags and time with an earlier row"), "{printed}");
    assert!(printed.contains("read back: all 3 values of 2 keys are there"), "{printed}");
    let api = server.api();
    assert_eq!(api.history("car", "a"), [(START_MS, json!(3)), (START_MS + 1_000, json!(2))]);
    assert_eq!(api.history("car", "b"), [(START_MS, json!("x"))]);
}

#[test]
fn an_import_of_more_rows_than_one_request_is_split() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path());
    let rows: String = (0..1_234).map(|n| format!("{n}\n")).collect();
    let rows = file(directory.path(), "n.csv", &format!("n\n{rows}"));
    let arguments =
        ["import", "--device", "car", "--interval", "100ms", "--start", START, "--data", text(&server.data)];
    run(&[&arguments[..], &[text(&rows)]].concat()).ok();
    let found = server.api().history("car", "n");
    assert!(found.iter().enumerate().all(|(n, point)| *point == (START_MS + 100 * n as i64, json!(n))));
    assert_eq!(found.len(), 1_234);
}

#[test]
fn an_invalid_file_is_refused_before_anything_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path());
    let data = text(&server.data);
    let good = file(directory.path(), "good.csv", "a\n1\n");
    for (name, content, expected) in [
        ("double.csv", "a,b,a ()\n1,2,3\n", "the columns 1 and 3 both become the key \"a\""),
        ("none.csv", "a,b\n", "none.csv has no rows"),
        ("empty.csv", "", "no column has a name"),
    ] {
        let bad = file(directory.path(), name, content);
        let error = run(&["import", "--device", "car", "--data", data, text(&good), text(&bad)]).failed(1);
        assert!(error.contains(expected) && error.contains(name), "{error}");
    }
    let missing = run(&["import", "--device", "car", "--data", data, "/nowhere.csv"]).failed(1);
    assert!(missing.contains("/nowhere.csv"), "{missing}");
    let unknown = run(&["import", "--device", "bus", "--data", data, text(&good)]).failed(1);
    assert!(unknown.contains("cannot find the device \"bus\"; add it with `"), "{unknown}");
    assert!(unknown.contains("tacho device add bus --data "), "{unknown}");
    assert_eq!(server.api().history("car", "a"), []);
}

#[test]
fn a_missing_directory_is_refused_or_created_by_an_option() {
    let directory = tempfile::tempdir().unwrap();
    let drive = file(directory.path(), "drive.csv", "a\n1\n2\n");
    let data = directory.path().join("data");
    let arguments = ["import", "--data", text(&data), text(&drive)];
    let error = run(&[&arguments[..], &["--device", "car"]].concat()).failed(1);
    assert!(error.contains("there is no data directory") && error.contains("import --create"), "{error}");
    let printed = run(&[&arguments[..], &["--create"]].concat()).ok();
    assert!(printed.contains("stored as \"drive\" in telemetry, a new device: 2 rows"), "{printed}");
    assert!(printed.contains("read back: all 2 values of 1 keys are there"), "{printed}");
    let server = Server::start(&data);
    assert_eq!(server.api().history("drive", "a").len(), 2);
}

#[test]
fn a_token_alone_uses_the_device_api() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    run(&["device", "add", "car", "--token", "secret", "--data", text(&data)]).ok();
    let server = Server::start(&data);
    let rows = file(directory.path(), "t.csv", "t,a\n1714550400.5,1\n1714550400.5004,2\n");
    let times = ["--ts-column", "t", "--ts-format", "s", "--data", text(&data), text(&rows)];
    let printed = run(&[&["import", "--device", "car", "--token", "secret"], &times[..]].concat()).ok();
    assert!(
        printed.contains("imported  2 rows with 2 values") && printed.contains("not read back"),
        "{printed}"
    );
    let exported = run(&["export", "--table", "telemetry", "--data", text(&data)]).ok();
    assert!(exported.contains("08:00:00.5Z") && exported.contains("08:00:00.5004Z"), "{exported}");
    assert_eq!(server.api().history("car", "a").len(), 2);
}
