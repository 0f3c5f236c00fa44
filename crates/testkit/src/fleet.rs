//! A small fleet in memory with known content. The scripts in `crates/query/tests/slt` and the examples of the pages query
//! it.

use std::sync::Arc;

use model::{Batch, SeriesKey, Timestamp, ValueRef};
use store::{Durability, MemoryStore, Store};

/// 2026-01-01T00:00:00Z, a Thursday, in microseconds.
pub const NEW_YEAR_US: i64 = 1_767_225_600_000_000;
/// A minute in microseconds.
pub const MINUTE_US: i64 = 60_000_000;

/// Keys with their values.
pub type Fields<'a> = &'a [(&'a str, ValueRef<'a>)];

/// Appends one row. The time is in minutes from the new year.
///
/// # Panics
/// When the store does not take the row.
#[allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]
pub fn put(store: &dyn Store, table: &str, tags: &[(&str, &str)], minute: i64, fields: Fields<'_>) {
    let series = store.series(&SeriesKey::new(table, tags).unwrap()).unwrap();
    let mut batch = Batch::new();
    let mut builder = batch.builder();
    fields.iter().for_each(|(key, value)| builder.field(key, *value));
    builder.row(series, Timestamp::from_micros(NEW_YEAR_US + minute * MINUTE_US));
    builder.finish();
    store.append(&batch, Durability::Memory).unwrap();
}

/// Ten rows of three vehicles, four rows of weather stations, and one dead letter.
pub fn fleet() -> Arc<MemoryStore> {
    use ValueRef::{Bool, F64, I64, Json, String};
    let store = Arc::new(MemoryStore::new());
    let row =
        |device, minute, fields: Fields<'_>| put(&*store, "telemetry", &[("device", device)], minute, fields);
    row("bus-1", 0, &[("speed", F64(10.0)), ("odo", I64(100))]);
    row("bus-1", 1, &[("speed", F64(20.0)), ("odo", I64(110))]);
    row("bus-1", 2, &[("speed", F64(30.0)), ("odo", I64(125))]);
    row("bus-1", 3, &[("odo", I64(5))]);
    row("bus-1", 4, &[("speed", F64(50.0)), ("odo", I64(20))]);
    row("bus-1", 5, &[("speed", F64(60.0)), ("odo", I64(40))]);
    row("bus-2", 0, &[("speed", F64(1.5))]);
    row("bus-2", 2, &[("speed", F64(2.5))]);
    row("bus-2", 4, &[("speed", F64(3.5)), ("batteryLevel", I64(80))]);
    let meta = r#"{"a":{"b":[1,2]},"s":"x"}"#;
    row(
        "car-1",
        1,
        &[("speed", F64(100.0)), ("note", String("hello")), ("meta", Json(meta)), ("on", Bool(true))],
    );
    row("car-1", 1, &[("speed", String("fast"))]);
    let weather = |minute, celsius| {
        put(&*store, "weather", &[("site", "depot"), ("kind", "roof")], minute, &[("celsius", F64(celsius))]);
    };
    weather(-60, 1.0);
    weather(0, 2.0);
    weather(3, 3.0);
    put(&*store, "weather", &[("site", "yard")], 0, &[("celsius", F64(-5.0))]);
    put(&*store, "dead_letter", &[("device", "car-1")], 2, &[("reason", String("not JSON"))]);
    put(&*store, "audit", &[("login", "ada")], 2, &[("act", String("add device"))]);
    store
}
