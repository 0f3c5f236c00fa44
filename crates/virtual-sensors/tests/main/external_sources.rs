//! Sources of virtual sensors whose elements come from outside, as connectors see them.

use std::time::Duration;

use ::virtual_sensors::{ExternalSources, ExternalWrapper, PushAnswer, SourceState};
use tokio::sync::watch;

use super::virtual_sensors::{MEAN, sensor};
use super::*;

const OF_PORT: &str = "wrapper = \"udp\"\n[stream.source.address.predicate]\nport = \"5500\"";
/// A time that the server takes, in microseconds.
const START: i64 = 1_700_000_000_000_000;
const SECOND: i64 = 1_000_000;

fn of_port() -> String {
    sensor("port", OF_PORT, "storage-size = \"2\"", MEAN)
}

impl Fixture {
    fn sources(&self) -> watch::Receiver<ExternalSources> {
        self.sensors.external_sources(&self.administrator()).unwrap()
    }
}

async fn changed(sources: &mut watch::Receiver<ExternalSources>) -> ExternalSources {
    let waited = tokio::time::timeout(Duration::from_secs(60), sources.changed()).await;
    waited.expect("the sources change").unwrap();
    Arc::clone(&sources.borrow_and_update())
}

#[tokio::test]
async fn rows_of_its_device_are_the_elements_of_a_source() {
    let fixture = fixture();
    let mut sources = fixture.sources();
    fixture.write("port.toml", &of_port());
    fixture.start_sensors();
    let listed = changed(&mut sources).await;
    let [source] = &listed[..] else { panic!("one source: {listed:?}") };
    assert_eq!(
        (&*source.sensor, &*source.source(), &source.external),
        ("port", "s/a", &ExternalWrapper::Udp { port: 5500 })
    );
    assert_eq!(source.fields, ["speed"]);
    let device = &source.device;
    assert_eq!(
        (&*device.name, &*device.profile.name, device.profile.table.name()),
        ("port/s/a", "port/inputs", "port_inputs")
    );
    until(|| fixture.sensor("port").is_some()).await;
    let waits_for = &fixture.sensor("port").unwrap().waits_for;
    assert_eq!(*waits_for, ["source a: datagrams to port 5500"]);
    for (second, speed) in [(0, 10), (1, 20), (2, 40)] {
        let series = fixture.hub.series_of(device).unwrap();
        let mut batch = Batch::new();
        let mut row = batch.builder();
        row.field("speed", ValueRef::I64(speed));
        row.row(series, Timestamp::from_micros(START + second * SECOND));
        row.finish();
        fixture.hub.ingest_and_wait(&batch, Durability::Fsync, Duration::ZERO).await.unwrap();
    }
    until(|| fixture.output("port").len() == 3).await;
    assert_eq!(fixture.output("port"), [(0.0, 10.0, 1), (1.0, 15.0, 2), (2.0, 30.0, 2)]);
    until(|| fixture.sensor("port").unwrap().waits_for.is_empty()).await;
}

#[tokio::test]
async fn what_a_connector_reports_is_shown() {
    let fixture = fixture();
    let mut sources = fixture.sources();
    fixture.write("port.toml", &of_port());
    fixture.start_sensors();
    let source = Arc::clone(&changed(&mut sources).await[0]);
    fixture.runs("port").await;
    let last_error = Some("the port is taken".to_owned());
    let state =
        SourceState { is_connected: true, elements: 7, failures: 1, last_error, ..SourceState::default() };
    fixture.sensors.report_source(&fixture.administrator(), &source, state.clone()).unwrap();
    let shown = &fixture.sensor("port").unwrap().sources[0];
    assert_eq!(
        (&*shown.source, shown.wrapper, &*shown.device, &shown.state),
        ("s/a", "udp", "port/s/a", &state)
    );
    let text = fixture.hub.metrics_text();
    assert!(
        text.contains("tacho_virtual_sensor_source_elements_total{sensor=\"port\",source=\"s/a\"} 7"),
        "{text}"
    );
    // A sensor that is gone takes its sources with it.
    std::fs::remove_file(fixture.directory().join("port.toml")).unwrap();
    assert!(changed(&mut sources).await.is_empty());
    assert!(!fixture.hub.metrics_text().contains("source=\"s/a\""));
}

#[tokio::test]
async fn a_pattern_stands_for_no_device_of_a_source() {
    let fixture = fixture();
    let every = OF_PORT.replace("udp", "tacho").replace("port = \"5500\"", "device = \"*\"");
    fixture.write("all.toml", &sensor("all", &every, "storage-size = \"2\"", MEAN));
    fixture.write("port.toml", &of_port());
    let mut sources = fixture.sources();
    fixture.start_sensors();
    let source = Arc::clone(&changed(&mut sources).await[0]);
    fixture.runs("all").await;
    for (device, speed) in [(&source.device, 10), (&fixture.device, 20)] {
        let series = fixture.hub.series_of(device).unwrap();
        let mut batch = Batch::new();
        let mut row = batch.builder();
        row.field("speed", ValueRef::I64(speed));
        row.row(series, Timestamp::from_micros(START));
        row.finish();
        fixture.hub.ingest_and_wait(&batch, Durability::Fsync, Duration::ZERO).await.unwrap();
    }
    until(|| fixture.output("all").len() == 1 && fixture.output("port").len() == 1).await;
    assert_eq!(fixture.output("all"), [(0.0, 20.0, 1)]);
}

#[tokio::test]
async fn pushed_elements_need_the_number_of_a_source_and_are_taken_when_it_says_so() {
    let fixture = fixture();
    let mut pushes = fixture.sensors.receive_pushes(&fixture.administrator()).unwrap();
    let number = pushes.number() as f64;
    let other = fixture.sensors.push_element(number + 1.0, "a".to_owned()).await;
    assert_eq!(other, PushAnswer::Unknown);
    assert_eq!(fixture.sensors.push_element(f64::NAN, "a".to_owned()).await, PushAnswer::Unknown);
    let take = async {
        let first = pushes.next().await.unwrap();
        assert_eq!(first.data, "b");
        first.taken();
        // It is not stored.
        drop(pushes.next().await.unwrap());
    };
    let push = async {
        let first = fixture.sensors.push_element(number, "b".to_owned()).await;
        (first, fixture.sensors.push_element(number, "c".to_owned()).await)
    };
    assert_eq!(tokio::join!(take, push).1, (PushAnswer::Taken, PushAnswer::Busy));
    drop(pushes);
    assert_eq!(fixture.sensors.push_element(number, "d".to_owned()).await, PushAnswer::Unknown);
}

#[test]
fn the_place_of_a_source_is_kept() {
    let fixture = fixture();
    let (sensors, caller, device) = (&fixture.sensors, fixture.administrator(), &fixture.device);
    assert_eq!(sensors.source_place(&caller, device).unwrap(), None);
    sensors.set_source_place(&caller, device, b"7").unwrap();
    sensors.set_source_place(&caller, device, b"8").unwrap();
    assert_eq!(sensors.source_place(&caller, device).unwrap().unwrap(), b"8");
}
