//! Reads of latest values. They come from the cache; a read first completes the cache from memtable and parts.

use std::sync::Arc;

use model::{PanicEndsProcess, SeriesId, TimeRange};
use store::{LatestValue, Order, StoreError};

use super::{SeriesReader, Snapshot, slots, snapshot, table_of};
use crate::catalog::Slot;
use crate::core::{Core, State};
use crate::latest::{Latest, Newest};
use crate::part::{NEWEST, Part, Rank};
use crate::row::KeyId;
use crate::tombstone::{hidden_in, is_value_hidden};

/// By key: the newest value so far, with the rank of its source.
type NewestValues = Vec<Option<(Newest, Rank)>>;

impl Core {
    pub(crate) fn latest(
        self: &Arc<Self>,
        series: SeriesId,
        keys: Option<&[String]>,
    ) -> Result<Vec<LatestValue>, StoreError> {
        loop {
            {
                let mut state = self.state.lock();
                let table = table_of(&state, series)?;
                if let Some(found) = cached(&mut state, table, series, keys) {
                    return Ok(found);
                }
            }
            self.load_latest(series)?;
        }
    }

    /// Completes the cache of a series. Appends keep it up to date from the moment of the snapshot on.
    fn load_latest(self: &Arc<Self>, series: SeriesId) -> Result<(), StoreError> {
        let id = series.0 as u32;
        let (keys, slots, snapshot, expiries) = {
            let mut state = self.state.lock();
            let expiries = state.expiries;
            let table = table_of(&state, series)?;
            let definitions = &state.catalog.tables[table as usize];
            let keys = definitions.keys.len();
            let slots = slots(definitions, definitions.live_keys().map(|(key, _)| key).collect());
            let _guard = PanicEndsProcess::begin();
            let State { series, latest, .. } = &mut *state;
            series[id as usize].begin_partial(id, latest);
            (keys, slots, snapshot(&mut state, id, None), expiries)
        };
        let newest = self.newest(keys, &slots, &snapshot)?;
        let mut state = self.state.lock();
        let _guard = PanicEndsProcess::begin();
        // The caller tries again if the cache was dropped meanwhile, or if retention may have dropped the rows.
        if state.expiries == expiries {
            let State { series, latest, .. } = &mut *state;
            series[id as usize].complete(newest, latest);
        }
        Ok(())
    }

    fn newest(
        self: &Arc<Self>,
        keys: usize,
        slots: &[Slot],
        snapshot: &Snapshot,
    ) -> Result<Vec<Newest>, StoreError> {
        let mut newest = Latest::new(false);
        for chunk in &snapshot.chunks {
            let of_table = snapshot.tombstones.as_ref();
            let hidden = of_table.and_then(|all| hidden_in(all, chunk.sequences().1, &chunk.extent()?));
            for row in chunk.rows_of(snapshot.series) {
                let is_left =
                    |field: &(KeyId, _)| !is_value_hidden(&hidden, snapshot.series, chunk.ts(row), field.0);
                let mut hint = 0;
                for (key, value) in chunk.fields(row).filter(is_left) {
                    hint = newest.update(hint, key, chunk.ts(row), value);
                }
            }
        }
        let mut found: NewestValues = vec![None; keys];
        for entry in newest.entries() {
            found[entry.key as usize] = Some((entry.clone(), NEWEST));
        }
        let mut parts: Vec<&Arc<Part>> = snapshot.parts.iter().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.info.ts.1));
        for part in parts {
            self.search_part(part, slots, snapshot, &mut found)?;
        }
        Ok(found.into_iter().flatten().map(|(newest, _)| newest).collect())
    }

    /// Searches a part for the keys whose newest value may be in it.
    fn search_part(
        self: &Arc<Self>,
        part: &Arc<Part>,
        slots: &[Slot],
        snapshot: &Snapshot,
        found: &mut NewestValues,
    ) -> Result<(), StoreError> {
        let may_be_newer = |slot: &&Slot| {
            let found = &found[slot.key as usize];
            found.as_ref().is_none_or(|(newest, _)| newest.ts <= part.info.ts.1)
        };
        let mut wanted: Vec<Slot> = slots.iter().filter(may_be_newer).cloned().collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let columns = self.part_cache.reader(self.disk.as_ref(), part)?;
        wanted.retain(|slot| columns.has(slot));
        let mut missing: Vec<KeyId> = wanted.iter().map(|slot| slot.key).collect();
        missing.dedup();
        let tombstones = snapshot.tombstones.clone();
        let only = Snapshot { chunks: Vec::new(), parts: vec![part.clone()], tombstones, ..*snapshot };
        let mut reader = SeriesReader::new(self, &only, &wanted, TimeRange::ALL, Order::Descending, 1);
        while !missing.is_empty()
            && let Some(columns) = reader.next()?
        {
            missing.retain(|key| {
                let value = |row: usize| columns.of_key(&wanted, Some(*key)).find_map(|of| of.get(row));
                let mut all =
                    columns.times().iter().enumerate().filter_map(|(row, ts)| Some((*ts, value(row)?)));
                let Some((ts, value)) = all.next() else { return true };
                let newest = &mut found[*key as usize];
                if newest.as_ref().is_none_or(|(newest, of)| (newest.ts, *of) < (ts, part.rank())) {
                    *newest = Some((Newest { key: *key, ts, value: value.to_owned() }, part.rank()));
                }
                false
            });
        }
        Ok(())
    }
}

/// The answer from the cache; `None` if the cache is not complete.
fn cached(
    state: &mut State,
    table: u32,
    series: SeriesId,
    keys: Option<&[String]>,
) -> Option<Vec<LatestValue>> {
    let definitions = &state.catalog.tables[table as usize];
    let mut one = None;
    let entries = state.series[series.0 as usize].latest(&mut state.latest, &mut one)?;
    let answer = |newest: &Newest| LatestValue {
        key: definitions.keys[newest.key as usize].name.to_string(),
        ts: newest.ts(),
        value: newest.value.clone(),
    };
    let mut found: Vec<LatestValue> = match keys {
        None => entries.iter().filter(|newest| !definitions.is_dropped(newest.key)).map(answer).collect(),
        Some(keys) => {
            let mut asked: Vec<KeyId> = keys.iter().filter_map(|key| definitions.key(key)).collect();
            asked.sort_unstable();
            asked.dedup();
            let find = |key: &KeyId| entries.binary_search_by_key(key, |newest| newest.key).ok();
            asked.iter().filter_map(find).map(|index| answer(&entries[index])).collect()
        }
    };
    found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    Some(found)
}
