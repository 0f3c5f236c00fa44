//! The bytes of a tombstone. docs/format/README.md has the table.

use super::Tombstone;
use crate::codec::{Malformed, Reader, put_varint};
use crate::entry::{Entry, series_set};
use crate::row::KeyId;

/// Appends the deletion of a tombstone. The sequence is not in it, nor the end of the series.
pub(crate) fn put_tombstone(out: &mut Vec<u8>, tombstone: &Tombstone) {
    let mut keys = Vec::new();
    if let Some(all) = &tombstone.keys {
        all.iter().for_each(|key| put_varint(&mut keys, (*key).into()));
    }
    let series = series_set::encode(&tombstone.series);
    let (table, ts) = (tombstone.table, tombstone.ts);
    Entry::Deletion { table, ts, keys: &keys, series: &series }.put(out);
}

/// The tombstone of an entry.
pub(crate) fn read_tombstone(sequence: u64, entry: Entry<'_>) -> Result<Tombstone, Malformed> {
    if let Entry::DroppedSeries { table, series } = entry {
        return Ok(Tombstone::of_series(sequence, table, series_set::decode(series)?));
    }
    let Entry::Deletion { table, ts, keys, series } = entry else {
        return Err(Malformed("an entry among deletions that is not a deletion"));
    };
    let keys = read_keys(keys)?;
    let series = series_set::decode(series)?;
    match series.is_empty() || ts.0 >= ts.1 {
        true => Err(Malformed("a deletion of nothing")),
        false => Ok(Tombstone { sequence, table, series, ts, keys, ends_series: false }),
    }
}

fn read_keys(bytes: &[u8]) -> Result<Option<Vec<KeyId>>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut keys: Vec<KeyId> = Vec::new();
    while !reader.is_empty() {
        let key = reader.index()?;
        if keys.last().is_some_and(|last| *last >= key) {
            return Err(Malformed("the keys of a deletion do not ascend"));
        }
        keys.push(key);
    }
    Ok((!keys.is_empty()).then_some(keys))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use store::SeriesSet;

    use super::super::tombstone;
    use super::*;

    proptest! {
        #[test]
        fn a_tombstone_comes_back(
            series in prop::collection::vec((any::<u32>(), 0..300_u32), 1..20),
            shift in 0..32_u32,
            ts in (any::<i32>(), 1..9_i64),
            keys in prop::option::of(prop::collection::btree_set(any::<u32>(), 1..5)),
        ) {
            let mut set = SeriesSet::new();
            for (first, length) in series {
                set.insert_range(first >> shift..=(first >> shift).saturating_add(length));
            }
            let keys = keys.map(|keys| keys.into_iter().collect());
            let ts = (ts.0.into(), i64::from(ts.0) + ts.1);
            let one = Tombstone { sequence: 7, table: 3, series: set, ts, keys, ends_series: false };
            let mut bytes = Vec::new();
            put_tombstone(&mut bytes, &one);
            let mut reader = Reader::new(&bytes);
            let found = read_tombstone(7, Entry::read(&mut reader).unwrap()).unwrap();
            prop_assert!(reader.is_empty());
            prop_assert_eq!(found, one);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let entry = Entry::Deletion { table: 0, ts: (0, 1), keys: &[], series: &bytes };
            if let Ok(found) = read_tombstone(1, entry) {
                prop_assert!(!found.series.is_empty());
            }
        }
    }

    #[test]
    fn all_series_of_a_table_take_few_bytes() {
        let mut one = tombstone(1, &[], (i64::MIN, i64::MAX), None);
        one.series.insert_range(1_000..=2_000_000);
        let mut bytes = Vec::new();
        put_tombstone(&mut bytes, &one);
        assert!(bytes.len() < 40, "{}", bytes.len());
    }

    #[test]
    fn a_deletion_of_nothing_is_refused() {
        for (ts, series) in [((5, 5), &[0, 0][..]), ((0, 9), &[])] {
            let entry = Entry::Deletion { table: 0, ts, keys: &[], series };
            assert_eq!(read_tombstone(1, entry), Err(Malformed("a deletion of nothing")));
        }
        let entry = Entry::Deletion { table: 0, ts: (0, 9), keys: &[3, 3], series: &[0, 0] };
        assert_eq!(read_tombstone(1, entry), Err(Malformed("the keys of a deletion do not ascend")));
    }
}
