//! Namespaces: tables of the same name share nothing.

use std::time::Duration;

use model::{Namespace, SeriesId, SeriesKey, TableName, Value};

use super::rows::table;
use super::{collect_table, read_all, rows};
use crate::Store;

pub(super) const CHECKS: [fn(&dyn Store); 2] =
    [a_series_belongs_to_its_namespace, a_table_belongs_to_its_namespace];

fn elsewhere() -> TableName {
    let namespace = Namespace::new("elsewhere").expect("a valid name");
    TableName::new(&namespace, "telemetry").expect("a valid name")
}

/// A row of the device `a` in the table `telemetry` of each namespace: 1 in the default one, 2 in the other.
fn fill(store: &dyn Store) -> [SeriesId; 2] {
    [(table("telemetry"), 1), (elsewhere(), 2)].map(|(table, value)| {
        let key = SeriesKey::device(&table, "a").expect("a valid name");
        let series = store.series(&key).expect("a series");
        rows::append(store, series, &[(1, &[("speed", Value::I64(value))])]);
        series
    })
}

fn a_series_belongs_to_its_namespace(store: &dyn Store) {
    let [ours, theirs] = fill(store);
    assert_ne!(ours, theirs);
    let newest = |series| store.latest(series, None).expect("a value")[0].value.clone();
    assert_eq!((newest(ours), newest(theirs)), (Value::I64(1), Value::I64(2)));
}

fn a_table_belongs_to_its_namespace(store: &dyn Store) {
    fill(store);
    let names: Vec<TableName> =
        store.tables().expect("the tables").into_iter().map(|status| status.table).collect();
    assert_eq!(names.len(), 2);
    assert!(names.contains(&table("telemetry")) && names.contains(&elsewhere()));
    let speeds = |table: &TableName| {
        let snapshot = store.snapshot(table).expect("a snapshot").expect("the table");
        collect_table(&*snapshot, &read_all(&*snapshot)).expect("the rows").len()
    };
    assert_eq!((speeds(&table("telemetry")), speeds(&elsewhere())), (1, 1));
    store.set_ttl(&elsewhere(), Some(Duration::from_secs(86_400))).expect("a ttl");
    assert_eq!(store.ttl(&table("telemetry")), None);
    assert!(store.drop_key(&elsewhere(), "speed").expect("room for a drop"));
    let columns = |table: &TableName| {
        store.snapshot(table).expect("a snapshot").expect("the table").columns().fields.len()
    };
    assert_eq!((columns(&table("telemetry")), columns(&elsewhere())), (1, 0));
}
