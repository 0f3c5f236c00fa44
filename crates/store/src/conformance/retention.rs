//! The sentences of the contract about retention.

use std::time::Duration;

use model::{Timestamp, Value};

use super::rows::{append, device, read};
use crate::table::DAY_US;
use crate::{Store, StoreError};

/// All checks of this file.
pub(super) const CHECKS: [fn(&dyn Store); 3] =
    [a_ttl_is_kept_by_table, young_rows_are_never_dropped, a_ttl_needs_a_store_that_writes];

const DAY: Duration = Duration::from_secs(86_400);

fn a_ttl_is_kept_by_table(store: &dyn Store) {
    assert_eq!(store.ttl(&super::rows::table("telemetry")), None);
    device(store, "d");
    store.set_ttl(&super::rows::table("telemetry"), Some(2 * DAY)).expect("a ttl");
    store.set_ttl(&super::rows::table("not there yet"), Some(DAY)).expect("a ttl");
    assert_eq!(store.ttl(&super::rows::table("telemetry")), Some(2 * DAY));
    assert_eq!(store.ttl(&super::rows::table("not there yet")), Some(DAY));
    store.set_ttl(&super::rows::table("telemetry"), None).expect("a ttl");
    assert_eq!(store.ttl(&super::rows::table("telemetry")), None);
    let tables = store.tables().expect("tables");
    let ttls: Vec<_> = tables.iter().map(|table| (table.table.name(), table.ttl)).collect();
    assert_eq!(ttls, [("not there yet", Some(DAY)), ("telemetry", None)]);
}

fn young_rows_are_never_dropped(store: &dyn Store) {
    let series = device(store, "d");
    let other = store.series(&model::SeriesKey::device("kept", "d").expect("a key")).expect("a series");
    // The first is older than its table keeps it, the others are not.
    let now = 100 * DAY_US + 1;
    let times = [97 * DAY_US, 98 * DAY_US + 1, 99 * DAY_US, 100 * DAY_US];
    for ts in times {
        append(store, series, &[(ts, &[("n", Value::I64(ts))])]);
        append(store, other, &[(ts, &[("n", Value::I64(ts))])]);
    }
    store.set_ttl(&super::rows::table("telemetry"), Some(2 * DAY)).expect("a ttl");
    for _ in 0..2 {
        store.drop_expired(Timestamp::from_micros(now)).expect("nothing to do, or done");
        let found: Vec<i64> = read(store, series, &["n"]).iter().map(|(ts, _)| *ts).collect();
        assert!(found == times || found == times[1..], "{found:?}");
        assert_eq!(read(store, other, &["n"]).len(), times.len());
    }
    assert_eq!(store.latest(series, None).expect("latest")[0].value, Value::I64(times[3]));
}

fn a_ttl_needs_a_store_that_writes(store: &dyn Store) {
    store.close().expect("a healthy store closes");
    assert!(matches!(store.set_ttl(&super::rows::table("t"), Some(DAY)), Err(StoreError::Closed)));
    assert!(matches!(store.drop_expired(Timestamp::MAX), Err(StoreError::Closed)));
}
