//! Random deletions of rows and values.

use model::{TimeRange, Timestamp};
use proptest::prelude::*;
use store::{Deletion, Durability, Sequence, Store, StoreError};

use super::{Content, KEYS, key};

/// A deletion without numbers of series, because these differ between the stores.
#[derive(Debug, Clone)]
pub(super) struct DeleteAction {
    /// Devices 0 and 1 have one table, device 2 another.
    devices: Vec<u8>,
    range: (i64, i64),
    keys: Option<Vec<u8>>,
    /// Whether it deletes the series, with all rows.
    ends_series: bool,
}

pub(super) fn delete() -> impl Strategy<Value = DeleteAction> {
    let devices = prop::sample::select(vec![vec![0], vec![1], vec![0, 1], vec![2]]);
    let range = prop_oneof![
        4 => (-5..20_i64, 0..20_i64).prop_map(|(from, length)| (from, from + length)),
        1 => (-3..3_i64).prop_map(|day| (day * 86_400_000_000, (day + 1) * 86_400_000_000)),
        1 => Just((i64::MIN, i64::MAX)),
    ];
    let keys = prop_oneof![
        2 => Just(None),
        1 => prop::collection::btree_set(0..KEYS.len() as u8, 1..3).prop_map(|keys| Some(keys.into_iter().collect())),
    ];
    let rows = (devices.clone(), range, keys);
    prop_oneof![
        4 => rows.prop_map(|(devices, range, keys)| DeleteAction { devices, range, keys, ends_series: false }),
        1 => devices.prop_map(|devices| {
            DeleteAction { devices, range: (i64::MIN, i64::MAX), keys: None, ends_series: true }
        }),
    ]
}

impl DeleteAction {
    /// Sends the request to a store; `None` if it has no series of the devices.
    pub(super) fn send(&self, store: &dyn Store, class: Durability) -> Option<Result<Sequence, StoreError>> {
        let deletion = self.of(store)?;
        Some(match self.ends_series {
            false => store.delete_rows(&deletion, class),
            true => store.delete_series(&deletion.series, class),
        })
    }

    fn of(&self, store: &dyn Store) -> Option<Deletion> {
        let at = Timestamp::from_micros;
        let number = |device: &u8| Some(store.find_series(&key(*device))?.0 as u32);
        let keys = self.keys.as_ref();
        let deletion = Deletion {
            series: self.devices.iter().filter_map(number).collect(),
            range: TimeRange::new(at(self.range.0), at(self.range.1)),
            keys: keys.map(|keys| keys.iter().map(|key| KEYS[*key as usize].to_owned()).collect()),
        };
        (!deletion.series.is_empty()).then_some(deletion)
    }

    /// Whether its devices have this table.
    pub(super) fn is_of(&self, table: &str) -> bool {
        key(self.devices[0]).table().name() == table
    }

    /// Whether it deletes the row of a device as a whole.
    pub(super) fn has_row(&self, device: u8, ts: i64) -> bool {
        self.keys.is_none() && self.covers(device, ts)
    }

    /// Whether it deletes a value, alone or with its row.
    pub(super) fn has(&self, device: u8, (ts, name): (i64, &str)) -> bool {
        let has_key = |keys: &Vec<u8>| keys.iter().any(|key| KEYS[*key as usize] == name);
        self.keys.as_ref().is_none_or(has_key) && self.covers(device, ts)
    }

    fn covers(&self, device: u8, ts: i64) -> bool {
        self.devices.contains(&device) && self.range.0 <= ts && ts < self.range.1
    }

    /// Checks that a power cut took the deletion as a whole or not at all: of the values that were durable before and that
    /// nothing else concerns, all are there or none.
    pub(super) fn check_whole<'a>(&self, cells: impl Iterator<Item = (u8, (i64, &'a str), bool)>) {
        let of_this: Vec<_> = cells.filter(|(device, cell, _)| self.has(*device, *cell)).collect();
        let kept = of_this.iter().filter(|(.., is_found)| *is_found).count();
        assert!(kept == 0 || kept == of_this.len(), "{self:?} took some of {of_this:?}");
    }
}

/// The values of a device, each with its device.
pub(super) fn cells(device: u8, content: &Content) -> impl Iterator<Item = (u8, (i64, &'static str))> {
    content.keys().map(move |cell| (device, *cell))
}
