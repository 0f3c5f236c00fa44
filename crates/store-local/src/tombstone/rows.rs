//! Interval arithmetic: leaves out what tombstones hide of sorted rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};

use super::Tombstone;
use crate::row::KeyId;

/// Rows of which a tombstone hides some values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mask {
    tombstone: Arc<Tombstone>,
    rows: Range<u32>,
}

/// What is left of successive rows of one series. `times` are the times of all rows, ascending within the span. Adds a mask
/// for each tombstone that hides values of rows.
pub(crate) fn hide_rows(
    series: u32,
    span: Range<u32>,
    times: &[i64],
    tombstones: &[Arc<Tombstone>],
    masks: &mut Vec<Mask>,
) -> Vec<Range<u32>> {
    let of_span = &times[span.start as usize..span.end as usize];
    let mut left = vec![span.clone()];
    for tombstone in tombstones.iter().filter(|tombstone| tombstone.series.contains(series)) {
        let position = |ts: i64| span.start + of_span.partition_point(|of| *of < ts) as u32;
        let rows = position(tombstone.ts.0)..position(tombstone.ts.1);
        if rows.is_empty() {
            continue;
        }
        match tombstone.keys {
            None => left = left.into_iter().flat_map(|range| without(range, &rows)).collect(),
            Some(_) => masks.push(Mask { tombstone: tombstone.clone(), rows }),
        }
    }
    left
}

/// A range without the numbers of another one: nothing, one or two ranges.
fn without(range: Range<u32>, hole: &Range<u32>) -> impl Iterator<Item = Range<u32>> + use<> {
    let before = range.start..range.end.min(hole.start);
    let after = range.start.max(hole.end)..range.end;
    [before, after].into_iter().filter(|range| !range.is_empty())
}

/// The values of a key, null where a mask hides them.
pub(crate) fn masked(array: ArrayRef, key: KeyId, masks: &[Mask]) -> ArrayRef {
    let mut of_key = masks.iter().filter(|mask| mask.tombstone.has_key(key)).peekable();
    if of_key.peek().is_none() {
        return array;
    }
    let mut valid = BooleanBufferBuilder::new(array.len());
    match array.nulls() {
        Some(nulls) => valid.append_buffer(nulls.inner()),
        None => valid.append_n(array.len(), true),
    }
    for row in of_key.flat_map(|mask| mask.rows.clone()) {
        valid.set_bit(row as usize, false);
    }
    let nulls = Some(NullBuffer::new(valid.finish()));
    let data = array.to_data().into_builder().nulls(nulls).build();
    make_array(data.expect("BUG: the null buffer has the length of the array"))
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use proptest::prelude::*;

    use super::super::tombstone;
    use super::*;

    #[test]
    fn ranges_without_others() {
        let found = |range: Range<u32>, hole: Range<u32>| {
            without(range, &hole).map(|left| (left.start, left.end)).collect::<Vec<_>>()
        };
        assert_eq!(found(0..10, 3..5), [(0, 3), (5, 10)]);
        assert_eq!(found(0..10, 0..5), [(5, 10)]);
        assert_eq!(found(0..10, 5..20), [(0, 5)]);
        assert_eq!(found(3..5, 0..10), []);
        assert_eq!(found(3..5, 5..10), [(3, 5)]);
        assert_eq!(found(3..5, 0..3), [(3, 5)]);
    }

    proptest! {
        #[test]
        fn the_rows_left_are_those_that_no_tombstone_hides(
            times in prop::collection::btree_set(-20..20_i64, 0..20),
            tombstones in prop::collection::vec((0..3_u32, -25..25_i64, 0..30_i64, prop::option::of(0..3_u32)), 0..6),
            start in 0..6_usize,
        ) {
            let before: Vec<i64> = std::iter::repeat_n(99, start).collect();
            let of_span: Vec<i64> = times.into_iter().collect();
            let all = [before, of_span.clone()].concat();
            let tombstones: Vec<_> = tombstones
                .into_iter()
                .map(|(series, from, length, key)| {
                    let keys = key.map(|key| [key]);
                    Arc::new(tombstone(9, &[series], (from, from + length), keys.as_ref().map(|keys| &keys[..])))
                })
                .collect();
            let mut masks = Vec::new();
            let span = start as u32..all.len() as u32;
            let left = hide_rows(1, span.clone(), &all, &tombstones, &mut masks);
            prop_assert!(left.windows(2).all(|pair| pair[0].end <= pair[1].start));
            prop_assert!(left.iter().all(|range| range.start < range.end || span.is_empty()));
            let found: Vec<u32> = left.into_iter().flatten().collect();
            let hidden: super::super::Hidden = Some(tombstones.clone().into());
            let expected: Vec<u32> =
                span.clone().filter(|row| !super::super::is_hidden(&hidden, 1, all[*row as usize])).collect();
            prop_assert_eq!(found, expected);
            for key in 0..3 {
                let array: ArrayRef = Arc::new(Int64Array::from_iter((0..all.len()).map(|row| (row % 4 != 3).then_some(1))));
                let masked = masked(array.clone(), key, &masks);
                for row in span.clone().filter(|row| array.is_valid(*row as usize)) {
                    let hides = |one: &Arc<Tombstone>| one.has_key(key) && one.covers(1, all[row as usize]);
                    prop_assert_eq!(masked.is_null(row as usize), tombstones.iter().any(hides));
                }
            }
        }
    }
}
