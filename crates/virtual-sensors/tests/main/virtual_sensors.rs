//! Virtual sensors of a directory, over rows of devices.

use std::path::PathBuf;
use std::time::Instant;

use ::virtual_sensors::{SensorInfo, SensorState};
use hub::registry::ProfileFields;
use kv::Space;
use serde_json::json;
use uuid::Uuid;

use super::*;
use store::Reader as _;

/// The space of the records of sensors (`docs/format/virtual-sensors.md`).
const SENSORS: Space = Space::new("virtual_sensors");
/// A time that the server takes, in microseconds.
const START: i64 = 1_700_000_000_000_000;
const SECOND: i64 = 1_000_000;

/// A sensor with one source, in TOML.
pub(super) fn sensor(name: &str, wrapper: &str, window: &str, query: &str) -> String {
    format!(
        "name = \"{name}\"\n[processing-class]\n[[processing-class.output-structure.field]]\nname = \"mean\"\ntype = \"double\"\n\
         [[processing-class.output-structure.field]]\nname = \"count\"\ntype = \"bigint\"\n[[stream]]\nname = \"s\"\n\
         query = \"{query}\"\n[[stream.source]]\nalias = \"a\"\n{window}\n[[stream.source.address]]\n{wrapper}\n"
    )
}

const OF_CAR: &str = "wrapper = \"tacho\"\n[stream.source.address.predicate]\ndevice = \"car\"";
pub(super) const MEAN: &str = "select avg(speed) as mean, count(*) as count from a";

fn of_sensor(name: &str) -> String {
    format!("wrapper = \"local\"\n[stream.source.address.predicate]\nname = \"{name}\"")
}

/// The mean of the last three speeds of the car.
fn mean_of_three() -> String {
    sensor("mean", OF_CAR, "storage-size = \"3\"", MEAN)
}

impl Fixture {
    pub(super) fn directory(&self) -> PathBuf {
        self._directory.path().join("sensors")
    }

    pub(super) fn write(&self, file: &str, text: &str) {
        std::fs::create_dir_all(self.directory()).unwrap();
        std::fs::write(self.directory().join(file), text).unwrap();
    }

    pub(super) fn start_sensors(&self) {
        self.sensors.start(self.directory());
    }

    pub(super) fn sensor(&self, name: &str) -> Option<Arc<SensorInfo>> {
        self.sensors.sensor(&self.administrator(), name).unwrap()
    }

    pub(super) async fn runs(&self, name: &str) {
        until(|| self.sensor(name).is_some_and(|sensor| sensor.state == SensorState::Running)).await;
    }

    async fn elements(&self, name: &str, elements: u64) {
        until(|| self.sensor(name).is_some_and(|sensor| sensor.counters.elements >= elements)).await;
    }

    /// The reason why the sensor of a file does not run, or not as its file says.
    async fn problem(&self, file: &str) -> String {
        let of_file = || {
            let sensors = self.sensors.sensors(&self.administrator()).unwrap();
            let sensor = sensors.iter().find(|sensor| sensor.file == file)?;
            match &sensor.state {
                SensorState::Failed { reason } => Some(reason.clone()),
                SensorState::Running => sensor.problem.clone(),
            }
        };
        until(|| of_file().is_some()).await;
        of_file().unwrap()
    }

    /// One sensor that was loaded and stopped. Returns its device.
    pub(super) fn one_sensor(&self) -> Uuid {
        self.write("gsn.xml", "<sensor-server><name>Roof</name></sensor-server>");
        self.write("mean.toml", &mean_of_three());
        self.start_sensors();
        let began = Instant::now();
        while self.sensor("mean").is_none_or(|sensor| sensor.device.is_empty()) {
            assert!(began.elapsed() < Duration::from_secs(60), "the sensor is loaded");
            std::thread::sleep(Duration::from_millis(2));
        }
        self.sensors.stop();
        self.hub.device_by_name(&self.administrator(), "mean").unwrap().id
    }

    /// The output of a sensor: seconds after the start, mean and count.
    pub(super) fn output(&self, name: &str) -> Vec<(f64, f64, i64)> {
        let device = self.hub.registry().device_by_name(self.device.tenant, name).unwrap();
        let series = self.hub.find_series_of(&self.administrator(), &device).unwrap().unwrap();
        let scan = store::Scan {
            series,
            keys: vec!["mean".to_owned(), "count".to_owned()],
            range: TimeRange::ALL,
            order: Order::Ascending,
            limit: usize::MAX,
        };
        let mut rows = Vec::new();
        self.store
            .scan(&scan, &mut |row| {
                let number = |at: usize| match row.values[at] {
                    Some(ValueRef::F64(number)) => number,
                    Some(ValueRef::I64(number)) => number as f64,
                    _ => f64::NAN,
                };
                rows.push(((row.ts.micros() - START) as f64 / SECOND as f64, number(0), number(1) as i64));
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        rows
    }

    /// Speeds of the car, one in a second, from a second on.
    fn drive(&self, from_s: i64, speeds: &[i64]) {
        for (at, speed) in speeds.iter().enumerate() {
            self.rows(&[(START + (from_s + at as i64) * SECOND, ValueRef::I64(*speed))]);
        }
    }
}

#[tokio::test]
async fn the_output_of_a_sensor_is_that_of_a_device() {
    let fixture = fixture();
    fixture.write("mean.toml", &mean_of_three());
    fixture.start_sensors();
    fixture.runs("MEAN").await;
    let info = fixture.sensor("mean").unwrap();
    assert_eq!((&*info.table, &*info.device, &*info.file), ("mean", "mean", "mean.toml"));
    assert_eq!(info.fields.iter().map(|field| &*field.name).collect::<Vec<_>>(), ["mean", "count"]);
    let device = fixture.hub.device_by_name(&fixture.administrator(), "mean").unwrap();
    assert_eq!(device.profile.name, "mean");
    // Alarm rules of its profile see the output.
    let rule =
        json!({"alarms": [{"id": "fast", "alarmType": "Too fast", "createRules": {"MAJOR": {"condition": {
        "condition": [{"key": {"type": "TIME_SERIES", "key": "mean"}, "valueType": "NUMERIC", "predicate": {
            "type": "NUMERIC", "operation": "GREATER", "value": {"defaultValue": 25.0}}}],
        "spec": {"type": "SIMPLE"}}}}}]})
        .to_string();
    let fields = ProfileFields { name: "mean", data: Some(&rule), ..ProfileFields::default() };
    fixture.hub.change_profile(&fixture.administrator(), device.profile.id, fields, None).unwrap();
    let mut subscriber = fixture.hub.live_connection(&fixture.administrator()).subscriber();
    subscriber.watch(fixture.hub.series_of(&device).unwrap());
    fixture.drive(0, &[10, 20, 30, 40]);
    until(|| fixture.output("mean").len() == 4).await;
    assert_eq!(fixture.output("mean"), [(0.0, 10.0, 1), (1.0, 15.0, 2), (2.0, 20.0, 3), (3.0, 30.0, 3)]);
    assert!(!subscriber.next().await.is_empty());
    until(|| fixture.hub.metrics().alarms.transitions.get() == 1).await;
    // A row that comes again, and one that is late, are not elements.
    fixture.drive(3, &[40]);
    fixture.drive(1, &[99]);
    fixture.drive(4, &[50]);
    until(|| fixture.output("mean").len() == 5).await;
    assert_eq!(fixture.output("mean")[4], (4.0, 40.0, 3));
    until(|| fixture.sensor("mean").unwrap().rows_out_of_order == 2).await;
}

#[tokio::test]
async fn a_file_is_followed_and_a_broken_one_changes_nothing() {
    let fixture = fixture();
    fixture.start_sensors();
    fixture.write("mean.toml", &mean_of_three());
    fixture.runs("mean").await;
    fixture.drive(0, &[10, 20]);
    fixture.elements("mean", 2).await;
    fixture.write(
        "mean.toml",
        "name = \"mean\"\n[processing-class]\nclass-name = \"Bridge\"\n[[stream]]\nname = 1 2\n",
    );
    let problem = fixture.problem("mean.toml").await;
    assert!(problem.starts_with("line 5, column"), "{problem}");
    fixture.drive(2, &[30]);
    until(|| fixture.output("mean").len() == 3).await;
    // The new file continues with full windows.
    fixture.write("mean.toml", &sensor("mean", OF_CAR, "storage-size = \"2\"", MEAN));
    until(|| fixture.sensor("mean").unwrap().problem.is_none()).await;
    fixture.drive(3, &[50]);
    until(|| fixture.output("mean").len() == 4).await;
    assert_eq!(fixture.output("mean")[3], (3.0, 40.0, 2));
    std::fs::remove_file(fixture.directory().join("mean.toml")).unwrap();
    until(|| fixture.sensor("mean").is_none()).await;
    fixture.drive(4, &[60]);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(fixture.output("mean").len(), 4, "the table stays, and nothing is added");
}

#[tokio::test]
async fn sensors_that_cannot_run_together_are_refused_with_their_files() {
    let fixture = fixture();
    fixture.write("a.toml", &mean_of_three());
    fixture.write("b.toml", &mean_of_three());
    fixture.write("c.toml", &sensor("one", &of_sensor("two"), "storage-size = \"1\"", "select mean from a"));
    fixture.write("d.toml", &sensor("two", &of_sensor("one"), "storage-size = \"1\"", "select mean from a"));
    fixture.write("e.toml", &sensor("car", OF_CAR, "storage-size = \"1\"", MEAN));
    let unknown = OF_CAR.replace("tacho", "tachy");
    fixture.write("f.toml", &sensor("wrapper", &unknown, "storage-size = \"1\"", MEAN));
    fixture.start_sensors();
    let problem = fixture.problem("a.toml").await;
    assert_eq!(problem, "a.toml: a.toml and b.toml have the same sensor \"mean\"; give each its own name");
    let problem = fixture.problem("c.toml").await;
    assert!(problem.contains("count"), "the field of the output that no stream gives: {problem}");
    let of_both = |name: &str, other: &str| {
        sensor(name, &of_sensor(other), "storage-size = \"1\"", "select mean, count from a")
    };
    fixture.write("c.toml", &of_both("one", "two"));
    fixture.write("d.toml", &of_both("two", "one"));
    until(|| {
        let sensors = fixture.sensors.sensors(&fixture.administrator()).unwrap();
        sensors
            .iter()
            .filter(|one| matches!(&one.state, SensorState::Failed { reason } if reason.contains("cycle")))
            .count()
            == 2
    })
    .await;
    let problem = fixture.problem("d.toml").await;
    assert!(problem.ends_with("in a cycle: two (d.toml) reads one (c.toml) reads two (d.toml)"), "{problem}");
    let problem = fixture.problem("e.toml").await;
    assert!(problem.contains("a device \"car\" of the profile \"default\" exists"), "{problem}");
    let problem = fixture.problem("f.toml").await;
    assert!(problem.contains("\"tachy\" is not a wrapper"), "{problem}");
    std::fs::remove_file(fixture.directory().join("b.toml")).unwrap();
    fixture.runs("mean").await;
}

#[tokio::test]
async fn a_sensor_reads_another_one_and_patterns_read_no_output() {
    let fixture = fixture();
    let all = OF_CAR.replace("\"car\"", "\"*\"");
    fixture.write("all.toml", &sensor("all", &all, "storage-size = \"100\"", MEAN));
    fixture.write("mean.toml", &mean_of_three());
    let last = "select mean as mean, count as count from a";
    fixture.write("last.toml", &sensor("last", &of_sensor("mean"), "storage-size = \"1\"", last));
    fixture.start_sensors();
    fixture.runs("last").await;
    fixture.drive(0, &[10, 20, 30]);
    until(|| fixture.output("last").len() == 3).await;
    assert_eq!(fixture.output("last"), fixture.output("mean"));
    let new = NewDevice { name: "van", ..NewDevice::default() };
    let van = fixture.hub.add_device(&fixture.administrator(), new).unwrap().device;
    let mut batch = Batch::new();
    let mut builder = batch.builder();
    builder.field("Speed", ValueRef::F64(70.0));
    builder.row(fixture.hub.series_of(&van).unwrap(), Timestamp::from_micros(START + 10 * SECOND));
    builder.finish();
    fixture.hub.ingest(&batch, Durability::Fsync).unwrap();
    until(|| fixture.output("all").len() == 4).await;
    assert_eq!(fixture.output("all")[3], (10.0, 32.5, 4));
}

#[tokio::test]
async fn a_busy_store_makes_a_sensor_wait_and_loses_nothing() {
    let fixture = fixture();
    fixture.write("mean.toml", &mean_of_three());
    fixture.start_sensors();
    fixture.runs("mean").await;
    fixture.store.hold();
    fixture.drive(0, &[10, 20, 30]);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(fixture.output("mean").is_empty(), "rows that are not durable are not evaluated");
    fixture.store.set_busy(Some("the disk is full"));
    fixture.store.release();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(fixture.output("mean").is_empty());
    fixture.store.set_busy(None);
    until(|| fixture.output("mean").len() == 3).await;
}

#[tokio::test]
async fn rows_without_room_are_read_again_and_evaluated_once() {
    let fixture = fixture_on(Portion::thousandths(1));
    fixture.write("mean.toml", &sensor("mean", OF_CAR, "storage-size = \"10000\"", MEAN));
    fixture.start_sensors();
    fixture.runs("mean").await;
    fixture.store.hold();
    fixture.drive(0, &[1; 2_000]);
    fixture.store.release();
    fixture.drive(2_000, &[1; 10]);
    until(|| fixture.output("mean").len() == 2_010).await;
    assert_eq!(fixture.output("mean").last(), Some(&(2_009.0, 1.0, 2_010)), "each row is in the window once");
    // The output of the rows with room may already be there when the others are read.
    until(|| !fixture.hub.metrics_text().contains("tacho_virtual_sensor_rereads_total 0")).await;
    assert_eq!(fixture.output("mean").len(), 2_010);
}

/// Runs a sensor over rows with a crash after some of them. Returns its output.
async fn crashed_after(text: &str, speeds: &[i64], at: usize, is_checkpointed: bool) -> Vec<(f64, f64, i64)> {
    let fixture = fixture();
    fixture.write("mean.toml", text);
    fixture.start_sensors();
    fixture.runs("mean").await;
    until(|| fixture.kv.get(SENSORS, b"mean").unwrap().is_some()).await;
    let begun = copy_of(&fixture.kv);
    fixture.drive(0, &speeds[..at]);
    fixture.elements("mean", at as u64).await;
    fixture.sensors.stop();
    let kv = if is_checkpointed { copy_of(&fixture.kv) } else { begun };
    let fixture = fixture.crashed(kv);
    // What comes while the sensor does not run is evaluated too.
    fixture.drive(at as i64, &speeds[at..at + 2]);
    fixture.start_sensors();
    fixture.runs("mean").await;
    fixture.drive(at as i64 + 2, &speeds[at + 2..]);
    let expected = speeds.len() - if is_checkpointed { at } else { 0 };
    fixture.elements("mean", expected as u64).await;
    fixture.sensors.stop();
    fixture.output("mean")
}

/// The rows before the last element. Slides in time at its time and after it come with the clock of the machine.
fn before_the_end(rows: Vec<(f64, f64, i64)>, elements: usize) -> Vec<(f64, f64, i64)> {
    let end = (elements - 1) as f64;
    rows.into_iter().filter(|(at, ..)| *at < end).collect()
}

#[tokio::test]
async fn after_a_crash_the_output_is_that_of_a_sensor_without_one() {
    let speeds: Vec<i64> = (0..40).map(|at| at * at % 37).collect();
    for window in [
        "storage-size = \"3\"",
        "storage-size = \"4\"\nslide = \"3\"",
        "storage-size = \"5s\"",
        "storage-size = \"5s\"\nslide = \"3s\"",
        "storage-size = \"6\"\nslide = \"4s\"",
    ] {
        let text = sensor("mean", OF_CAR, window, MEAN);
        let fixture = fixture();
        fixture.write("mean.toml", &text);
        fixture.start_sensors();
        fixture.runs("mean").await;
        fixture.drive(0, &speeds);
        fixture.elements("mean", speeds.len() as u64).await;
        fixture.sensors.stop();
        let expected = before_the_end(fixture.output("mean"), speeds.len());
        assert!(expected.len() >= 9, "{window}: {expected:?}");
        for (at, is_checkpointed) in [(7, true), (7, false), (19, true), (19, false)] {
            let output = crashed_after(&text, &speeds, at, is_checkpointed).await;
            let output = before_the_end(output, speeds.len());
            assert_eq!(output, expected, "{window}, crash after {at}, {is_checkpointed}");
        }
    }
}

#[tokio::test]
async fn event_time_sorts_late_rows_also_over_a_crash() {
    let text = format!("lateness = \"5s\"\n{}", sensor("mean", OF_CAR, "storage-size = \"2\"", MEAN));
    let fixture = fixture();
    fixture.write("mean.toml", &text);
    fixture.start_sensors();
    fixture.runs("mean").await;
    fixture.drive(0, &[10]);
    fixture.drive(2, &[30]);
    fixture.drive(1, &[20]);
    fixture.drive(20, &[100]);
    until(|| fixture.output("mean").len() == 3).await;
    let sorted = [(0.0, 10.0, 1), (1.0, 15.0, 2), (2.0, 25.0, 2)];
    assert_eq!(fixture.output("mean"), sorted);
    fixture.sensors.stop();
    let kv = copy_of(&fixture.kv);
    let fixture = fixture.crashed(kv);
    fixture.start_sensors();
    fixture.runs("mean").await;
    fixture.drive(40, &[200]);
    until(|| fixture.output("mean").len() == 4).await;
    assert_eq!(
        fixture.output("mean")[3],
        (20.0, 65.0, 2),
        "the row that waited is evaluated after the start"
    );
}

#[tokio::test]
async fn a_history_size_is_the_time_to_live_of_the_table() {
    let fixture = fixture();
    let text = mean_of_three()
        .replace("[processing-class]", "[storage]\nhistory-size = \"48h\"\n[processing-class]");
    fixture.write("mean.toml", &text);
    fixture.write("count.toml", &text.replace("48h", "100").replacen("mean", "counted", 1));
    fixture.start_sensors();
    fixture.runs("mean").await;
    fixture.runs("counted").await;
    let ttl = |table: &str| fixture.hub.ttl_of(&fixture.administrator(), Some(table)).unwrap();
    assert_eq!(ttl("mean"), Some(Duration::from_secs(48 * 3_600)));
    assert_eq!(ttl("counted"), None);
}
