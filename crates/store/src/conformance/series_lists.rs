//! The sentences about lists of series and of tag values.

use std::ops::ControlFlow;
use std::sync::Arc;

use model::{SeriesId, SeriesKey, Value};

use super::{append, wait};
use crate::{Durability, SeriesSet, Store, TableSnapshot};

/// The checks.
pub(super) const CHECKS: [fn(&dyn Store); 4] = [
    series_are_listed_without_their_rows,
    values_of_a_tag_come_once,
    a_list_is_as_old_as_its_snapshot,
    a_list_of_many_series_is_whole,
];

fn series(store: &dyn Store, table: &str, tags: &[(&str, &str)]) -> SeriesId {
    store.series(&SeriesKey::new(table, tags).expect("valid names")).expect("a series")
}

fn snapshot(store: &dyn Store) -> Arc<dyn TableSnapshot> {
    store.snapshot(&super::table("telemetry")).expect("a snapshot").expect("the table")
}

fn set(series: &[SeriesId]) -> SeriesSet {
    series.iter().map(|series| series.0 as u32).collect()
}

/// The numbers and the tags, as text.
fn listed(snapshot: &dyn TableSnapshot, series: Option<&SeriesSet>) -> Vec<(SeriesId, String)> {
    let mut found = Vec::new();
    let mut visit = |id: u32, tags: &[(&str, &str)]| {
        let tags: Vec<String> = tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
        found.push((SeriesId(id.into()), tags.join(",")));
        ControlFlow::Continue(())
    };
    snapshot.each_series(series, &mut visit).expect("a list");
    found
}

/// The values, sorted.
fn values(snapshot: &dyn TableSnapshot, tag: &str, series: Option<&SeriesSet>) -> Vec<String> {
    let mut found = Vec::new();
    let mut visit = |value: &str| {
        found.push(value.to_owned());
        ControlFlow::Continue(())
    };
    snapshot.tag_values(tag, series, &mut visit).expect("values");
    found.sort_unstable();
    found
}

fn series_are_listed_without_their_rows(store: &dyn Store) {
    let a = series(store, "telemetry", &[("site", "north"), ("device", "a")]);
    let other = series(store, "other", &[("device", "a")]);
    let b = series(store, "telemetry", &[("device", "b")]);
    let bare = series(store, "telemetry", &[]);
    append(store, a, &[(1, &[("n", Value::I64(1))]), (2, &[("n", Value::I64(2))])]);
    let snapshot = snapshot(store);
    let all = [(a, "device=a,site=north".to_owned()), (b, "device=b".to_owned()), (bare, String::new())];
    assert_eq!(listed(snapshot.as_ref(), None), all);
    assert_eq!(listed(snapshot.as_ref(), Some(&set(&[bare, a]))), [all[0].clone(), all[2].clone()]);
    assert_eq!(listed(snapshot.as_ref(), Some(&SeriesSet::new())), []);
    let foreign = set(&[other, b, SeriesId(4_000_000)]);
    assert_eq!(listed(snapshot.as_ref(), Some(&foreign)), [all[1].clone()]);
    let mut visited = 0;
    let mut stop = |_: u32, _: &[(&str, &str)]| {
        visited += 1;
        ControlFlow::Break(())
    };
    snapshot.each_series(None, &mut stop).expect("a list");
    assert_eq!(visited, 1);
}

fn values_of_a_tag_come_once(store: &dyn Store) {
    let ids: Vec<SeriesId> = [("a", "north"), ("b", "south"), ("c", "north"), ("d", "north"), ("e", "east")]
        .map(|(device, site)| series(store, "telemetry", &[("device", device), ("site", site)]))
        .into();
    series(store, "telemetry", &[("device", "without a site")]);
    series(store, "other", &[("site", "west")]);
    let snapshot = snapshot(store);
    assert_eq!(values(snapshot.as_ref(), "site", None), ["east", "north", "south"]);
    assert_eq!(values(snapshot.as_ref(), "device", None).len(), 6);
    assert_eq!(values(snapshot.as_ref(), "never", None), [""; 0]);
    assert_eq!(values(snapshot.as_ref(), "site", Some(&set(&ids[2..4]))), ["north"]);
    assert_eq!(values(snapshot.as_ref(), "device", Some(&set(&ids[1..3]))), ["b", "c"]);
    assert_eq!(values(snapshot.as_ref(), "site", Some(&SeriesSet::new())), [""; 0]);
    let mut visited = 0;
    let mut stop = |_: &str| {
        visited += 1;
        ControlFlow::Break(())
    };
    snapshot.tag_values("site", None, &mut stop).expect("values");
    assert_eq!(visited, 1);
}

fn a_list_is_as_old_as_its_snapshot(store: &dyn Store) {
    let tags = |device, site| [("device", device), ("site", site)];
    let gone = series(store, "telemetry", &tags("gone", "north"));
    let also_gone = series(store, "telemetry", &tags("also gone", "north"));
    let kept = series(store, "telemetry", &tags("kept", "south"));
    let before = snapshot(store);
    let sequence = store.delete_series(&set(&[gone, also_gone]), Durability::Fsync).expect("room");
    wait(store, Durability::Fsync, sequence);
    let after = snapshot(store);
    let new = series(store, "telemetry", &[("device", "new"), ("site", "west"), ("floor", "1")]);
    assert_eq!(listed(before.as_ref(), None).len(), 3);
    assert_eq!(values(before.as_ref(), "site", None), ["north", "south"]);
    assert_eq!(listed(after.as_ref(), None), [(kept, "device=kept,site=south".to_owned())]);
    assert_eq!(values(after.as_ref(), "site", None), ["south"]);
    assert_eq!(values(after.as_ref(), "site", Some(&set(&[gone, kept, new]))), ["south"]);
    let newest = snapshot(store);
    assert_eq!(
        listed(newest.as_ref(), Some(&set(&[new]))),
        [(new, "device=new,floor=1,site=west".to_owned())]
    );
    assert_eq!(values(newest.as_ref(), "floor", None), ["1"]);
    assert!(store.drop_table(&super::table("telemetry")).expect("room for a drop"));
    assert_eq!(listed(newest.as_ref(), None).len(), 2);
}

fn a_list_of_many_series_is_whole(store: &dyn Store) {
    const SERIES: usize = 3_000;
    let name = |n: usize| format!("d{n:04}");
    let site = |n: usize| format!("s{}", n % 7);
    let ids: Vec<SeriesId> = (0..SERIES)
        .map(|n| series(store, "telemetry", &[("device", &name(n)), ("site", &site(n))]))
        .collect();
    let snapshot = snapshot(store);
    let expected = |n: usize| (ids[n], format!("device={},site={}", name(n), site(n)));
    assert!(listed(snapshot.as_ref(), None).into_iter().eq((0..SERIES).map(expected)));
    assert!(values(snapshot.as_ref(), "device", None).into_iter().eq((0..SERIES).map(name)));
    assert_eq!(values(snapshot.as_ref(), "site", None).len(), 7);
    let half = set(&ids[SERIES / 2..]);
    assert!(values(snapshot.as_ref(), "device", Some(&half)).into_iter().eq((SERIES / 2..SERIES).map(name)));
    assert_eq!(values(snapshot.as_ref(), "site", Some(&half)).len(), 7);
}
