//! Sets of series as bytes: runs of successive numbers, because a set is one series, or nearly all of a table.
//!
//! For each run: varint distance of its first number from the number after the run before, varint number of its further series.

use store::SeriesSet;

use crate::codec::{Malformed, Reader, put_varint};

/// The bytes of a set.
pub(crate) fn encode(series: &SeriesSet) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut end = 0;
    let mut rest = series.iter();
    while let Some(run) = rest.next_range() {
        put_varint(&mut bytes, u64::from(*run.start()) - end);
        put_varint(&mut bytes, u64::from(run.end() - run.start()));
        end = u64::from(*run.end()) + 1;
    }
    bytes
}

/// The set of these bytes.
pub(crate) fn decode(bytes: &[u8]) -> Result<SeriesSet, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut series = SeriesSet::new();
    let mut end: u64 = 0;
    while !reader.is_empty() {
        let first = end.checked_add(reader.varint()?);
        let further = reader.varint()?;
        let last = first.and_then(|first| first.checked_add(further));
        let number = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(Malformed("a series of a set over 32 bits"));
        };
        series.insert_range(first..=last);
        end = u64::from(last) + 1;
    }
    Ok(series)
}
