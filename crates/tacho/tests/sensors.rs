//! `tacho sensor`, without a server.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::tacho::{run, text};

const STREET: &str = r#"
name = "street"
priority = 3
[processing-class]
[[processing-class.output-structure.field]]
name = "mean"
type = "double"
[[processing-class.output-structure.field]]
name = "zone"
type = "string"
[[stream]]
name = "input"
query = "select avg(celsius) as mean, zone from road group by zone"
[[stream.source]]
alias = "road"
storage-size = 2
[[stream.source.address]]
wrapper = "csv"
[stream.source.address.predicate]
file = "road.csv"
fields = "timed,zone,celsius"
formats = "timestamp(yyyy-MM-dd'T'HH:mm:ss'Z'),string,numeric"
"#;

fn file(directory: &Path, name: &str, content: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

#[test]
fn a_sensor_runs_over_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let sensor = file(directory.path(), "street.toml", STREET);
    let data = "timed,zone,celsius\n1000,007,20\n1970-01-01T00:00:02Z,007,21\n3000,007,\n4000,007,30.5\n";
    let data = file(directory.path(), "road.csv", data);
    let printed = run(&["sensor", "run", text(&sensor), "--csv", text(&data)]).ok();
    let expected = "timed,mean,zone\n1970-01-01T00:00:01Z,20.0,007\n1970-01-01T00:00:02Z,20.5,007\n\
                    1970-01-01T00:00:03Z,21.0,007\n1970-01-01T00:00:04Z,30.5,007\n";
    assert_eq!(printed, expected);
    let named = format!("input.road={}", text(&data));
    assert_eq!(run(&["sensor", "run", text(&sensor), "--csv", &named, "--lateness", "5000"]).ok(), expected);
}

#[test]
fn a_file_without_a_field_or_a_time_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sensor = file(directory.path(), "street.toml", STREET);
    let refused = |content: &str| {
        let data = file(directory.path(), "road.csv", content);
        run(&["sensor", "run", text(&sensor), "--csv", text(&data)]).failed(1)
    };
    let without_time = refused("zone,celsius\n007,20\n");
    assert!(without_time.contains("has no column timed"), "{without_time}");
    let bad_time = refused("timed,zone,celsius\nyesterday,007,20\n");
    assert!(bad_time.contains("line 2: \"yesterday\" is not a time"), "{bad_time}");
    let other = run(&["sensor", "run", text(&sensor), "--csv", "path=x.csv"]).failed(1);
    assert!(other.contains("fits 0 sources; name one of input.road"), "{other}");
    let absent = refused("timed,zone\n1,007\n");
    assert!(absent.contains("there is no field \"celsius\""), "{absent}");
}

#[test]
fn files_are_checked_and_explained() {
    let directory = tempfile::tempdir().unwrap();
    let good = file(directory.path(), "good.toml", STREET);
    let bad = file(directory.path(), "bad.toml", &STREET.replace("celsius) as mean", "kelvin) as mean"));
    let container = file(
        directory.path(),
        "gsn.xml",
        "<sensor-server><port>22001</port><storage driver='org.h2.Driver' url='jdbc:h2:mem:a'/></sensor-server>",
    );
    let printed = run(&["sensor", "check", text(&good), text(&container)]).ok();
    assert!(
        printed.contains("good.toml: ok\n  line 3, column 12: note: priority has no effect"),
        "{printed}"
    );
    assert!(printed.contains("gsn.xml: ok\n  line 1, column"), "{printed}");
    let done = run(&["sensor", "check", text(&good), text(&bad), "--json"]);
    let lines: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["ok"], &lines[1]["ok"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!(lines[1]["faults"][0]["place"]["line"], 13);
    assert!(done.failed(1).contains("1 of 2 files have a fault"));
    let explained = run(&["sensor", "explain", text(&good)]).ok();
    assert!(explained.contains("window: 2 elements, on each element"), "{explained}");
}
