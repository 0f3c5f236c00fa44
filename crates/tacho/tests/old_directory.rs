//! Opens the data directory that an earlier build wrote. `testdata/write.py` has made it, `testdata/README.md` says how.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::tacho::{Server, run, text};

/// Milliseconds of the first value, as in `testdata/write.py`.
const START: i64 = 1_767_225_600_000;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// A copy of the directory of `testdata`.
fn fixture() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/data-directory"), directory.path());
    directory
}

fn sql(data: &Path, statement: &str) -> String {
    run(&["sql", "--data", text(data), "--format", "csv", statement]).ok()
}

/// What a server sends to a device over MQTT 3.1.1 that subscribes to its topics, up to a payload.
fn subscribed(server: &Server, token: &str, payload: &str) -> String {
    let text = |text: &str| [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat();
    let packet = |kind: u8, body: Vec<u8>| [vec![kind, body.len() as u8], body].concat();
    let connect = [text("MQTT"), vec![4, 0x82, 0, 60], text("reader"), text(token)].concat();
    let subscribe = [vec![0, 1], text("devices/truck/#"), vec![0]].concat();
    let address = server.lines.iter().find_map(|line| line.strip_prefix("listening mqtt ")).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(&[packet(0x10, connect), packet(0x82, subscribe)].concat()).unwrap();
    let (mut found, mut buffer) = (String::new(), [0; 256]);
    while !found.ends_with(payload) {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the server has closed the connection: {found:?}");
        found += &String::from_utf8_lossy(&buffer[..count]);
    }
    found
}

/// Compares what a server reads with what the script has sent.
fn check(server: &Server) {
    let api = server.api();
    let truck = api.get("/api/tenant/devices?deviceName=truck")["id"]["id"].as_str().unwrap().to_owned();
    let yard = api.get("/api/tenant/assets?assetName=yard");
    assert_eq!(yard["type"], "place");
    let from = format!("/api/relations?fromId={}&fromType=ASSET", yard["id"]["id"].as_str().unwrap());
    assert_eq!(api.get(&from)[0]["to"]["id"], json!(truck));
    assert_eq!(api.get("/api/customers?pageSize=10&page=0")["data"][0]["title"], "customer");

    let second = |n: i64| START + n * 1_000;
    let expected = |of: &dyn Fn(i64) -> Value| (0..7).map(|n| (second(n), of(n))).collect::<Vec<_>>();
    let place = json!({ "lat": 50.9, "lon": 6.9 });
    let columns: [(&str, &dyn Fn(i64) -> Value); 6] = [
        ("speed", &|n| json!(50.25 + 10.0 * n as f64)),
        ("rpm", &|n| json!(1_500 + n)),
        ("on", &|n| json!(n % 2 == 0)),
        ("note", &|n| json!(format!("round {n}"))),
        ("place", &|_| place.clone()),
        ("ratio", &|n| json!(n as f64 / 3.0)),
    ];
    for (key, of) in columns {
        assert_eq!(api.history("truck", key), expected(of), "{key}");
    }

    let path =
        format!("/api/plugins/telemetry/DEVICE/{truck}/values/attributes/SERVER_SCOPE?keys=plate,axles");
    let mut attributes: Vec<(String, Value)> = (api.get(&path).as_array().unwrap().iter())
        .map(|found| (found["key"].as_str().unwrap().to_owned(), found["value"].clone()))
        .collect();
    attributes.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(attributes, [("axles".into(), json!(3)), ("plate".into(), json!("K-TA 1"))]);
    let alarms = api.get(&format!("/api/alarm/DEVICE/{truck}?pageSize=10&page=0"));
    assert_eq!(
        (&alarms["data"][0]["type"], &alarms["data"][0]["severity"]),
        (&json!("Too fast"), &json!("CRITICAL"))
    );
    assert_eq!(alarms["data"][0]["startTs"], json!(second(4)), "{alarms}");
    assert!(subscribed(server, "truck-token", "retained").contains("devices/truck/hello"));
    let sensors = api.get("/api/tacho/sensors");
    assert_eq!(sensors["sensors"][0]["name"], "street", "{sensors}");
    assert_eq!(
        api.history("street", "celsius"),
        [(second(0), json!(3.0)), (second(1), json!(2.5)), (second(2), json!(0.5))]
    );
}

#[test]
fn a_directory_of_an_earlier_build_is_read() {
    let directory = fixture();
    let data = directory.path();
    let checked = run(&["check", "--data", text(data)]).ok();
    assert!(checked.contains("no damage"), "{checked}");
    for round in ["first", "second"] {
        let server = Server::start(data);
        check(&server);
        assert_eq!(
            sql(data, "SELECT count(*) FROM telemetry WHERE device = 'truck'").trim_end(),
            "count\r\n7",
            "{round}"
        );
        run(&["compact", "--data", text(data)]).ok();
        check(&server);
        assert_eq!(server.terminate().0.code(), Some(0), "{round}");
    }
    assert!(run(&["check", "--data", text(data)]).ok().contains("no damage"));
}

/// The directory is saved as it is, before a server of the current program has changed it.
#[test]
fn a_directory_of_an_earlier_build_is_backed_up_and_restored() {
    let (directory, other) = (fixture(), tempfile::tempdir().unwrap());
    let (backup, restored) = (other.path().join("backup"), other.path().join("restored"));
    run(&["backup", text(&backup), "--data", text(directory.path())]).ok();
    run(&["restore", text(&backup), "--data", text(&restored)]).ok();
    copy(&directory.path().join("sensors"), &restored.join("sensors"));
    let server = Server::start(&restored);
    check(&server);
    assert_eq!(server.terminate().0.code(), Some(0));
}
