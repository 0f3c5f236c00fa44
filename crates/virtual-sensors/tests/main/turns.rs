//! Sensors whose evaluations take long, beside others.

use super::virtual_sensors::{MEAN, sensor};
use super::*;

const START: i64 = 1_700_000_000_000_000;
const SECOND: i64 = 1_000_000;
/// Elements whose evaluation takes long.
const LONG: i64 = 3;
/// Rows of each of the windows that are joined.
const WINDOW: i64 = 100;
/// All elements: more than the inbox of a sensor has room for.
const ELEMENTS: i64 = 1_000;

fn of_device(name: &str) -> String {
    format!("wrapper = \"tacho\"\n[stream.source.address.predicate]\ndevice = \"{name}\"")
}

/// A sensor with a row for each element of the car. For the first ones it computes many conditions over each pair of rows of the trailer.
fn joining() -> String {
    let conditions: Vec<_> = (0..100).map(|n| format!("b.speed * {n} + c.speed > 1000000{n}")).collect();
    let conditions = conditions.join(" or ");
    let query = format!(
        "select max(a.speed) as mean, count(*) as count from a, b, c where a.speed >= {LONG} or not ({conditions})"
    );
    let source = |alias: &str| {
        let address = of_device("trailer");
        format!(
            "[[stream.source]]\nalias = \"{alias}\"\nstorage-size = \"{WINDOW}\"\n[[stream.source.address]]\n{address}\n"
        )
    };
    let of_car = sensor("joining", &of_device("car"), "storage-size = \"1\"", &query);
    format!("{of_car}{}{}", source("b"), source("c"))
}

impl Fixture {
    fn drive_device(&self, device: &Device, from: i64, to: i64) {
        let series = self.hub.series_of(device).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for number in from..to {
            builder.field("speed", ValueRef::I64(number));
            builder.row(series, Timestamp::from_micros(START + number * SECOND));
        }
        builder.finish();
        self.hub.ingest(&batch, Durability::Fsync).unwrap();
    }
}

#[tokio::test]
async fn a_long_evaluation_holds_no_other_sensor_and_no_row_is_lost() {
    // The inboxes of all sensors have 32 KiB.
    let fixture = fixture_on(Portion::thousandths(1));
    let new = NewDevice { name: "trailer", ..NewDevice::default() };
    let trailer = fixture.hub.registry().add_device(fixture.device.tenant, new).unwrap().device;
    fixture.drive_device(&trailer, 0, WINDOW);
    fixture.write("joining.toml", &joining());
    fixture.write("mean.toml", &sensor("mean", &of_device("car"), "storage-size = \"3\"", MEAN));
    fixture.start_sensors();
    fixture.runs("joining").await;
    fixture.runs("mean").await;
    for from in (0..ELEMENTS).step_by(50) {
        fixture.drive_device(&fixture.device, from, from + 50);
    }
    until(|| fixture.output("mean").len() == ELEMENTS as usize).await;
    let ahead = fixture.output("joining").len();
    assert!(ahead < LONG as usize, "the other one has evaluated {ahead} elements meanwhile");
    until(|| fixture.output("joining").len() == ELEMENTS as usize).await;
    let times: Vec<_> = fixture.output("joining").iter().map(|(at, ..)| *at as i64).collect();
    assert_eq!(times, (0..ELEMENTS).collect::<Vec<_>>());
    let last = |number: i64| ((number - 1) as f64, (number - 1) as f64, WINDOW * WINDOW);
    assert_eq!(fixture.output("joining").last(), Some(&last(ELEMENTS)), "the windows are as they were");
    // Callers see the counts a little later.
    until(|| fixture.sensor("joining").unwrap().counters.elements >= ELEMENTS as u64).await;
    let joining = fixture.sensor("joining").unwrap();
    assert_eq!(joining.counters.elements, ELEMENTS as u64, "each is evaluated once");
    assert_eq!((joining.counters.faults, joining.rows_out_of_order), (0, 0), "{:?}", joining.counters);
    assert!(joining.turns_over_budget > 0);
    fixture.sensors.stop();
}

#[tokio::test]
async fn the_end_does_not_wait_for_a_long_evaluation() {
    let fixture = fixture();
    let new = NewDevice { name: "trailer", ..NewDevice::default() };
    let trailer = fixture.hub.registry().add_device(fixture.device.tenant, new).unwrap().device;
    fixture.drive_device(&trailer, 0, WINDOW);
    fixture.write("joining.toml", &joining());
    fixture.start_sensors();
    fixture.runs("joining").await;
    fixture.drive_device(&fixture.device, 0, LONG);
    fixture.sensors.stop();
    let before = fixture.output("joining").len();
    // What was ended in its middle is evaluated after the next start.
    let kv = copy_of(&fixture.kv);
    let fixture = fixture.crashed(kv);
    fixture.start_sensors();
    until(|| fixture.output("joining").len() == LONG as usize).await;
    assert!(before < LONG as usize);
}
