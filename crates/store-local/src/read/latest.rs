//! Latest values: from the cache, which is filled from memtable and parts when it is not complete.

use model::{SeriesId, TimeRange};
use store::{LatestValue, Order, StoreError};

use super::{AskedKey, Snapshot, Source, asked_key, snapshot, table_of};
use crate::core::{Core, State};
use crate::latest::{Latest, Newest};
use crate::part::read::{KeyColumns, PartSource};
use crate::part::{NEWEST, Part, Rank};
use crate::row::KeyId;

impl Core {
    pub(crate) fn latest(
        &self,
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

    /// Makes the cache of a series complete. From the moment of the snapshot on appends keep it up to date.
    fn load_latest(&self, series: SeriesId) -> Result<(), StoreError> {
        let id = series.0 as u32;
        let (keys, snapshot, expiries) = {
            let mut state = self.state.lock();
            let expiries = state.expiries;
            let table = table_of(&state, series)?;
            let definitions = state.catalog.tables[table as usize].keys.iter().enumerate();
            let keys: Vec<AskedKey> = definitions.map(|(id, key)| asked_key(id as KeyId, key)).collect();
            let State { series, latest, .. } = &mut *state;
            series[id as usize].begin_partial(id, latest);
            (keys, snapshot(&mut state, id), expiries)
        };
        let newest = self.newest(&keys, &snapshot)?;
        let mut state = self.state.lock();
        // If it was dropped meanwhile the caller tries again; so too if what was found may be gone.
        if state.expiries == expiries {
            let State { series, latest, .. } = &mut *state;
            series[id as usize].complete(newest, latest);
        }
        Ok(())
    }

    fn newest(&self, keys: &[AskedKey], snapshot: &Snapshot) -> Result<Vec<Newest>, StoreError> {
        let mut newest = Latest::new(false);
        for chunk in &snapshot.chunks {
            for row in chunk.rows_of(snapshot.series) {
                let mut hint = 0;
                for (key, value) in chunk.fields(row) {
                    hint = newest.update(hint, key, chunk.ts(row), value);
                }
            }
        }
        // By key: what was found, with the rank of the source that had it.
        let mut found: Vec<Option<(Newest, Rank)>> = vec![None; keys.len()];
        for entry in newest.entries() {
            found[entry.key as usize] = Some((entry.clone(), NEWEST));
        }
        let mut parts: Vec<&Part> = snapshot.parts.iter().map(AsRef::as_ref).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.info.ts.1));
        for part in parts {
            self.look_into(part, keys, snapshot.series, &mut found)?;
        }
        Ok(found.into_iter().flatten().map(|(newest, _)| newest).collect())
    }

    /// Looks for keys whose newest value may be in this part.
    fn look_into(
        &self,
        part: &Part,
        keys: &[AskedKey],
        series: u32,
        found: &mut [Option<(Newest, Rank)>],
    ) -> Result<(), StoreError> {
        let may_be_newer = |found: &Option<(Newest, Rank)>| {
            found.as_ref().is_none_or(|(newest, _)| newest.ts <= part.info.ts.1)
        };
        let mut wanted: Vec<&AskedKey> =
            keys.iter().filter(|key| may_be_newer(&found[key.id as usize])).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let reader = self.part_cache.reader(self.disk.as_ref(), part)?;
        wanted.retain(|key| key.columns.iter().any(|(_, name)| reader.has(name)));
        let columns: Vec<KeyColumns> = wanted.iter().map(|key| key.columns.clone()).collect();
        let mut source = PartSource::new(reader, series, &columns, TimeRange::ALL, Order::Descending)?;
        let rank = part.rank();
        let mut missing: Vec<usize> = (0..wanted.len()).collect();
        while let Some(ts) = source.ts()
            && !missing.is_empty()
        {
            missing.retain(|index| {
                let Some(value) = source.value(*index) else {
                    return true;
                };
                let key = wanted[*index].id;
                let place = &mut found[key as usize];
                if place.as_ref().is_none_or(|(newest, of)| (newest.ts, *of) < (ts, rank)) {
                    *place = Some((Newest { key, ts, value: value.to_owned() }, rank));
                }
                false
            });
            source.advance()?;
        }
        Ok(())
    }
}

/// The answer from memory, if the cache is complete.
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
        None => entries.iter().map(answer).collect(),
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
