//! `tacho sensor list`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Instant, SystemTime};

use clap::Args;
use indicatif::HumanCount;
use serde_json::Value;

use crate::client::{Api, ServerArgs, escaped};
use crate::data_args::DataArgs;
use crate::limits::{SENSOR_FILES_AGE, SENSOR_FILES_PAUSE, SENSOR_FILES_WAIT};
use crate::output::{columns, say};

/// The path of the list of sensors.
const SENSORS: &str = "/api/tacho/sensors";

/// Lists the virtual sensors of a running server, or shows one
///
/// On the server's own machine the command waits, for seconds at most, until the server has read the files that have just been written.
///
/// A sensor that is FAILED does not run, and the reason names the file, the place and what is expected there. One that is RUNNING with a
/// problem continues as its file was before.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho sensor list
  tacho sensor list street
  tacho sensor list --json")]
pub(crate) struct ListArgs {
    /// Shows this sensor with its fields, counters, and how it is computed
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Prints the answer of the server as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub(super) fn run(args: &ListArgs) -> anyhow::Result<()> {
    let config = args.data.load()?;
    let api = args.server.find(&config)?;
    args.server.log_in(&api, &config)?;
    if args.server.url.is_none() {
        wait_for_files(&api, &config.sensors)?;
    }
    match &args.name {
        Some(name) => show(&api, name, args.json),
        None => list(&api, args.json),
    }
}

/// Waits until the server has seen the files that are in its directory now: what somebody has just written is in the answer.
fn wait_for_files(api: &Api, directory: &Path) -> anyhow::Result<()> {
    let files = DescriptorFiles::of(directory);
    let age = files.newest.and_then(|newest| SystemTime::now().duration_since(newest).ok());
    let Some(young) = age.and_then(|age| SENSOR_FILES_AGE.checked_sub(age)) else { return Ok(()) };
    std::thread::sleep(young);
    let end = Instant::now() + SENSOR_FILES_WAIT;
    while Instant::now() < end {
        let answer = api.get(SENSORS)?;
        let listed = answer["sensors"].as_array().into_iter().flatten();
        let listed: BTreeSet<_> = listed.filter_map(|sensor| sensor["file"].as_str()).collect();
        if files.names.iter().all(|name| listed.contains(name.as_str())) {
            break;
        }
        std::thread::sleep(SENSOR_FILES_PAUSE);
    }
    Ok(())
}

/// The descriptors in a directory, and when they or the directory changed last. A directory that cannot be read has none.
struct DescriptorFiles {
    names: BTreeSet<String>,
    newest: Option<SystemTime>,
}

impl DescriptorFiles {
    fn of(directory: &Path) -> Self {
        let modified = |path: &Path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let (mut names, mut newest) = (BTreeSet::new(), modified(directory));
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let ending = Path::new(&name).extension().and_then(|ending| ending.to_str());
            if matches!(ending, Some("xml" | "toml")) && !name.starts_with('.') {
                newest = newest.max(modified(&entry.path()));
                // The file of the container is no sensor.
                if name != "gsn.xml" {
                    names.insert(name);
                }
            }
        }
        Self { names, newest }
    }
}

fn list(api: &Api, json: bool) -> anyhow::Result<()> {
    let answer = api.get(SENSORS)?;
    if json {
        return say(answer);
    }
    let unexpected = || api.unexpected("GET", SENSORS, "no list of sensors in the answer");
    let sensors = answer["sensors"].as_array().ok_or_else(unexpected)?;
    let head = ["SENSOR", "STATE", "ELEMENTS", "ROWS", "FAULTS", "TABLE", "FILE"].map(str::to_owned);
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(sensors.iter().map(cells)).collect();
    columns(&rows, 2..5).iter().try_for_each(say)?;
    sensors.iter().filter_map(problem).try_for_each(say)?;
    sensors.iter().flat_map(failing_sources).try_for_each(say)?;
    sensors.iter().flat_map(followers).try_for_each(say)?;
    container_problem(&answer).iter().try_for_each(say)
}

/// The sources from outside that have had a fault, a line for each.
fn failing_sources(sensor: &Value) -> Vec<String> {
    let name = sensor["name"].as_str().unwrap_or_default();
    let sources = sensor["sources"].as_array().into_iter().flatten();
    let failing = sources.filter(|source| source["lastError"].is_string());
    failing.map(|source| format!("{name}: {}", source_line(source))).collect()
}

/// A source whose elements come from outside of the server.
fn source_line(source: &Value) -> String {
    let text = |key: &str| source[key].as_str().unwrap_or("-").to_owned();
    let state = if source["connected"] == true { "connected" } else { "NOT CONNECTED" };
    let mut line = format!("{} ({}, {}): {state}", text("source"), text("wrapper"), text("address"));
    for key in ["elements", "refused", "dropped", "failures"] {
        if let Some(count) = source[key].as_u64().filter(|count| *count > 0) {
            line.push_str(&format!(", {} {key}", HumanCount(count)));
        }
    }
    if let Some(error) = source["lastError"].as_str() {
        line.push_str(&format!("; last error: {error}"));
    }
    line
}

/// What copies the output of a sensor to the target, a line each.
fn followers(sensor: &Value) -> Vec<String> {
    let name = sensor["name"].as_str().unwrap_or_default();
    let followers = sensor["followers"].as_array().into_iter().flatten();
    let line = |follower: &Value| {
        let text = |key: &str| follower[key].as_str().unwrap_or_default();
        let behind = HumanCount(follower["rowsBehind"].as_u64().unwrap_or(0));
        let state = match (follower["connected"] == true, text("lastError")) {
            (true, _) => "connected".to_owned(),
            (false, "") => "connecting".to_owned(),
            (false, error) => format!("not connected: {error}"),
        };
        format!("{name}: {} to {}: {behind} rows behind, {state}", text("name"), text("target"))
    };
    followers.map(line).collect()
}

/// Why the file of the container is not used as it is.
fn container_problem(answer: &Value) -> Option<String> {
    let container = &answer["container"];
    Some(format!("{}: {}", container["file"].as_str()?, container["problem"].as_str()?))
}

fn cells(sensor: &Value) -> [String; 7] {
    let text = |key: &str| sensor[key].as_str().unwrap_or("-").to_owned();
    let count = |key: &str| HumanCount(sensor[key].as_u64().unwrap_or(0)).to_string();
    let state = text("state").to_uppercase();
    [text("name"), state, count("elements"), count("rows"), count("faults"), text("table"), text("file")]
}

/// Why a sensor does not run, or not as its file says.
fn problem(sensor: &Value) -> Option<String> {
    let reason = sensor["reason"].as_str().map(str::to_owned);
    let of_file = || Some(format!("{}: {}", sensor["file"].as_str()?, sensor["problem"].as_str()?));
    reason.or_else(of_file)
}

fn show(api: &Api, name: &str, json: bool) -> anyhow::Result<()> {
    let sensor = api.get(&format!("/api/tacho/sensors/{}", escaped(name)))?;
    if json {
        return say(sensor);
    }
    let text = |key: &str| sensor[key].as_str().unwrap_or_default().trim_end().to_owned();
    say(format!("{} ({}, {})", text("name"), text("state"), text("file")))?;
    problem(&sensor).iter().try_for_each(say)?;
    say(text("explanation"))?;
    followers(&sensor).iter().try_for_each(say)?;
    for key in ["notes", "waitsFor"] {
        let lines = sensor[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        let lead = if key == "notes" { "note" } else { "waits for a device" };
        lines.map(|line| format!("{lead}: {line}")).try_for_each(say)?;
    }
    let sources = sensor["sources"].as_array().into_iter().flatten();
    sources.map(|source| format!("source {}", source_line(source))).try_for_each(say)?;
    let counters = sensor["counters"].as_object().into_iter().flatten();
    let shown = counters.filter(|(_, value)| !value.is_null() && **value != 0);
    let rows: Vec<[String; 2]> = shown.map(|(key, value)| [key.clone(), value.to_string()]).collect();
    columns(&rows, 1..2).iter().try_for_each(say)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_files_of_sensors_are_those_that_the_server_reads() {
        let place = tempfile::tempdir().unwrap();
        for name in ["street.toml", "road.xml", "gsn.xml", ".road.xml.swp", "notes.txt"] {
            std::fs::write(place.path().join(name), "").unwrap();
        }
        let files = DescriptorFiles::of(place.path());
        assert_eq!(files.names.iter().collect::<Vec<_>>(), ["road.xml", "street.toml"]);
        assert!(files.newest.is_some());
        let absent = DescriptorFiles::of(&place.path().join("absent"));
        assert!(absent.names.is_empty() && absent.newest.is_none());
    }

    #[test]
    fn a_sensor_is_a_line_and_its_problem_another() {
        let sensor = json!({
            "name": "street", "state": "running", "reason": null, "problem": "line 3, column 1: no", "file": "street.toml",
            "table": "street", "elements": 1_000, "rows": 20, "faults": 0,
        });
        assert_eq!(cells(&sensor), ["street", "RUNNING", "1,000", "20", "0", "street", "street.toml"]);
        assert_eq!(problem(&sensor).unwrap(), "street.toml: line 3, column 1: no");
        let failed = json!({ "name": "x", "state": "failed", "reason": "x.xml: line 1, column 1: no", "file": "x.xml" });
        assert_eq!(cells(&failed)[5], "-");
        assert_eq!(problem(&failed).unwrap(), "x.xml: line 1, column 1: no");
        assert_eq!(problem(&json!({ "name": "y", "state": "running" })), None);
        let follower = json!({ "name": "storage", "target": "MySQL h:3306/gsn, table y", "connected": false, "rowsBehind": 1_200,
            "lastError": "no route" });
        let lines = followers(&json!({ "name": "y", "followers": [follower] }));
        assert_eq!(
            lines,
            ["y: storage to MySQL h:3306/gsn, table y: 1,200 rows behind, not connected: no route"]
        );
        let answer = json!({ "container": { "file": "gsn.xml", "problem": "line 1, column 1: no" } });
        assert_eq!(container_problem(&answer).unwrap(), "gsn.xml: line 1, column 1: no");
    }

    #[test]
    fn a_source_from_outside_is_a_line_if_it_has_had_a_fault() {
        let source = |error: Option<&str>| {
            json!({
                "source": "s/road", "wrapper": "udp", "address": "datagrams to port 7", "connected": error.is_none(),
                "elements": 1_000, "dropped": 2, "lastError": error,
            })
        };
        let sensor = json!({ "name": "street", "sources": [source(None), source(Some("port 7 is taken"))] });
        let line = "street: s/road (udp, datagrams to port 7): NOT CONNECTED, 1,000 elements, 2 dropped; last error: port 7 is taken";
        assert_eq!(failing_sources(&sensor), [line]);
        assert!(source_line(&source(None)).contains(": connected, 1,000 elements"));
    }
}
