//! The report of `tacho status`, as lines and as JSON.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use serde_json::Value;

/// The state of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// The server accepts writes.
    #[default]
    Ready,
    /// Writes wait at present.
    Busy,
    /// A write failed, so the server accepts no more writes. Reads continue.
    Sealed,
    /// The server does not answer.
    Silent,
    /// A process has the directory and has not opened its doors yet.
    Starting,
    /// No process has the directory.
    Stopped,
}

/// The report. Unknown values are `None`.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) state: State,
    /// The reasons why the server is not ready.
    pub(super) reasons: Vec<String>,
    pub(super) url: Option<String>,
    pub(super) data: Option<PathBuf>,
    pub(super) process: Option<u32>,
    pub(super) version: Option<String>,
    pub(super) uptime_s: Option<u64>,
    /// The durability class of the default profile.
    pub(super) durability: Option<String>,
    pub(super) devices: Option<u64>,
    pub(super) connections: Option<Connections>,
    pub(super) points_per_s: Option<f64>,
    pub(super) backlog: Option<Backlog>,
    pub(super) disk: Option<Disk>,
    pub(super) tables: Option<Vec<Table>>,
}

/// Open connections by door.
#[derive(Debug, Serialize)]
pub(super) struct Connections {
    mqtt: u64,
    http: u64,
    postgres: u64,
}

/// Data that was accepted and is not in parts yet.
#[derive(Debug, Serialize)]
pub(super) struct Backlog {
    /// Bytes of the log that are not yet durable.
    log_pending_bytes: u64,
    /// Bytes of rows in memory that are not in parts. The log has them.
    memtable_bytes: u64,
    /// The reason why flushes wait.
    flush_held: Option<String>,
}

/// Bytes of the data directory and of its file system.
#[derive(Debug, Serialize)]
pub(super) struct Disk {
    used_bytes: u64,
    free_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Table {
    table: String,
    series: u64,
    rows: u64,
    bytes: u64,
}

impl Report {
    /// The report of a directory in that state.
    pub(super) fn of(state: State, data: &Path) -> Self {
        Self { state, data: Some(data.into()), ..Self::default() }
    }

    /// Fills in the answer of `/api/status`.
    pub(super) fn tell(&mut self, status: &Value) {
        let (store, text) = (&status["store"], |value: &Value| value.as_str().map(str::to_owned));
        let (sealed, busy) = (text(&store["sealed"]), text(&store["busy"]));
        self.state = match (&sealed, &busy) {
            (Some(_), _) => State::Sealed,
            (None, Some(_)) => State::Busy,
            (None, None) => State::Ready,
        };
        let flush_held = text(&store["flush_held"]);
        self.reasons = sealed.into_iter().chain(busy).collect();
        self.version = text(&status["version"]);
        self.uptime_s = status["uptime_s"].as_u64();
        self.durability = text(&status["durability"]);
        self.devices = status["devices"].as_u64();
        let door = |name: &str| status["connections"][name].as_u64();
        self.connections = door("mqtt")
            .zip(door("http"))
            .zip(door("postgres"))
            .map(|((mqtt, http), postgres)| Connections { mqtt, http, postgres });
        let bytes = |name: &str| store[name].as_u64();
        self.backlog = bytes("log_pending_bytes").zip(bytes("memtable_bytes")).map(
            |(log_pending_bytes, memtable_bytes)| Backlog { log_pending_bytes, memtable_bytes, flush_held },
        );
    }

    /// The report as text, a line for each known value.
    pub(super) fn lines(&self) -> String {
        let mut lines = Vec::new();
        let mut line = |name: &str, text: Option<String>| {
            lines.extend(text.map(|text| format!("{name:13}{text}")));
        };
        line("state", Some(self.state.words().into()));
        self.reasons.iter().for_each(|reason| line("", Some(reason.clone())));
        line("server", self.url.clone());
        line("process", self.process.map(|process| process.to_string()));
        line("version", self.version.clone());
        line("up", self.uptime_s.map(duration));
        line("data", self.data.as_ref().map(|data| data.display().to_string()));
        line("disk", self.disk.as_ref().map(Disk::words));
        line("acks", self.durability.as_ref().map(|durability| format!("{durability} (default profile)")));
        line("devices", self.devices.map(|devices| HumanCount(devices).to_string()));
        line("connections", self.connections.as_ref().map(Connections::words));
        line("points/s", self.points_per_s.map(|points| points.to_string()));
        line("waiting", self.backlog.as_ref().map(Backlog::words));
        for table in self.tables.iter().flatten() {
            line("table", Some(table.words()));
        }
        lines.join("\n")
    }
}

impl State {
    fn words(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Busy => "busy: writes must wait",
            Self::Sealed => "sealed: the store accepts no more writes since one failed; reads continue",
            Self::Silent => "no answer",
            Self::Starting => "starting",
            Self::Stopped => "stopped: no server runs on this directory",
        }
    }
}

impl Connections {
    fn words(&self) -> String {
        let Self { mqtt, http, postgres } = self;
        format!("{} mqtt, {} http, {} postgres", HumanCount(*mqtt), HumanCount(*http), HumanCount(*postgres))
    }
}

impl Backlog {
    fn words(&self) -> String {
        let (log, memory) = (HumanBytes(self.log_pending_bytes), HumanBytes(self.memtable_bytes));
        let held = self.flush_held.as_ref().map(|why| format!("; flushes wait: {why}")).unwrap_or_default();
        format!("{log} for the disk, {memory} in memory for parts (the log has them){held}")
    }
}

impl Disk {
    /// Adds up the sizes of the files in a directory. Files that appear or vanish meanwhile are ignored.
    pub(super) fn of(data: &Path) -> io::Result<Self> {
        let file_system = rustix::fs::statvfs(data).ok();
        let free = file_system.map(|system| system.f_bavail.saturating_mul(system.f_frsize));
        Ok(Self { used_bytes: used(data)?, free_bytes: free })
    }

    fn words(&self) -> String {
        let free = self.free_bytes.map(|free| format!(", {} free", HumanBytes(free))).unwrap_or_default();
        format!("{} used{free}", HumanBytes(self.used_bytes))
    }
}

fn used(directory: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        sum += match entry.metadata() {
            Ok(it) if it.is_dir() => used(&entry.path()).unwrap_or_default(),
            Ok(it) => it.len(),
            Err(_) => 0,
        };
    }
    Ok(sum)
}

impl Table {
    /// A table as the server lists it.
    pub(super) fn of(listed: &Value) -> Option<Self> {
        let number = |name: &str| listed[name].as_u64();
        let table = listed["table"].as_str()?.to_owned();
        Some(Self { table, series: number("series")?, rows: number("rows")?, bytes: number("bytes")? })
    }

    fn words(&self) -> String {
        let Self { table, series, rows, bytes } = self;
        format!(
            "{table}: {} rows of {} series, {}",
            HumanCount(*rows),
            HumanCount(*series),
            HumanBytes(*bytes)
        )
    }
}

fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(store: Value) -> Value {
        json!({
            "version": "1.2.3", "uptime_s": 3_725, "durability": "fsync", "devices": 2_000,
            "connections": { "mqtt": 1_999, "http": 2, "postgres": 0 }, "points_total": 7, "store": store,
        })
    }

    fn told(store: Value) -> Report {
        let mut report = Report::default();
        report.tell(&status(store));
        report
    }

    #[test]
    fn the_report_of_a_ready_server_has_all_lines() {
        let mut report = told(json!({ "log_pending_bytes": 0, "memtable_bytes": 2_048 }));
        report.tables =
            Some(vec![Table { table: "telemetry".into(), series: 2_000, rows: 1_000_000, bytes: 1_024 }]);
        report.points_per_s = Some(2_000.5);
        assert_eq!(
            report.lines(),
            "\
state        ready
version      1.2.3
up           1 h 2 min
acks         fsync (default profile)
devices      2,000
connections  1,999 mqtt, 2 http, 0 postgres
points/s     2000.5
waiting      0 B for the disk, 2.00 KiB in memory for parts (the log has them)
table        telemetry: 1,000,000 rows of 2,000 series, 1.00 KiB"
        );
    }

    #[test]
    fn a_server_that_refuses_writes_is_not_ready_and_has_a_reason() {
        let sealed = told(json!({ "sealed": "cannot write the log", "busy": "the disk is full" }));
        assert_eq!((sealed.state, sealed.reasons.len()), (State::Sealed, 2));
        let busy = told(json!({ "sealed": null, "busy": "the disk is full" }));
        assert!(busy.state == State::Busy && busy.lines().contains("the disk is full"), "{}", busy.lines());
        assert_eq!(serde_json::to_value(&busy).unwrap()["state"], "busy");
    }

    #[test]
    fn durations_have_two_units() {
        assert_eq!([5, 65, 3_725, 100_000].map(duration), ["5 s", "1 min 5 s", "1 h 2 min", "1 d 3 h"]);
    }

    #[test]
    fn the_files_below_a_directory_are_added_up() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("store")).unwrap();
        fs::write(directory.path().join("store/a"), "12345").unwrap();
        fs::write(directory.path().join("b"), "678").unwrap();
        let disk = Disk::of(directory.path()).unwrap();
        assert!(disk.used_bytes == 8 && disk.free_bytes.is_some(), "{disk:?}");
    }
}
