//! Runs: rows with one f64 each, for keys with the same number, as columns of fixed width. docs/format/README.md.
//!
//! The columns have offsets from the smallest series and the smallest time. All offsets of a column have as many bytes as
//! the largest one needs, so that no branch depends on a row, neither in a write nor in a read.

use crate::chunk::Numbers;
use crate::codec::{Malformed, Reader, put_varint};
use crate::row::KeyId;

/// A run in a payload. No offset leads beyond the largest series or time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run<'a> {
    pub(crate) key: KeyId,
    rows: usize,
    series: (u32, usize),
    ts: (i64, usize),
    /// The three columns, one after the other.
    columns: &'a [u8],
}

const VALUE_BYTES: usize = size_of::<f64>();

/// Encodes rows; at least one.
pub(super) fn put(out: &mut Vec<u8>, rows: Numbers<'_>) {
    let (series, series_span) = extent(rows.series.iter().map(|series| i64::from(*series)));
    let (ts, ts_span) = extent(rows.ts.iter().copied());
    let (series_width, ts_width) = (width(series_span), width(ts_span));
    put_varint(out, rows.key.into());
    put_varint(out, rows.len() as u64);
    put_varint(out, series.cast_unsigned());
    out.extend_from_slice(&ts.to_le_bytes());
    out.push(series_width as u8 | (ts_width as u8) << 4);
    put_offsets(
        out,
        series_width,
        rows.series.iter().map(|of| u64::from(*of).wrapping_sub(series.cast_unsigned())),
    );
    put_offsets(out, ts_width, rows.ts.iter().map(|of| of.wrapping_sub(ts).cast_unsigned()));
    let start = out.len();
    out.resize(start + rows.len() * VALUE_BYTES, 0);
    for (bytes, value) in out[start..].as_chunks_mut::<VALUE_BYTES>().0.iter_mut().zip(rows.values) {
        *bytes = value.to_le_bytes();
    }
}

/// The smallest number, and its distance to the largest one.
fn extent(numbers: impl Iterator<Item = i64>) -> (i64, u64) {
    let (min, max) = numbers.fold((i64::MAX, i64::MIN), |(min, max), of| (min.min(of), max.max(of)));
    (min, max.wrapping_sub(min).cast_unsigned())
}

/// The number of bytes that a number needs.
fn width(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(8) as usize
}

fn put_offsets(out: &mut Vec<u8>, width: usize, offsets: impl ExactSizeIterator<Item = u64>) {
    fn put<const WIDTH: usize>(out: &mut Vec<u8>, offsets: impl ExactSizeIterator<Item = u64>) {
        let start = out.len();
        out.resize(start + offsets.len() * WIDTH, 0);
        for (bytes, offset) in out[start..].chunks_exact_mut(WIDTH).zip(offsets) {
            bytes.copy_from_slice(&offset.to_le_bytes()[..WIDTH]);
        }
    }
    match width {
        0 => {}
        1 => put::<1>(out, offsets),
        2 => put::<2>(out, offsets),
        3 => put::<3>(out, offsets),
        4 => put::<4>(out, offsets),
        5 => put::<5>(out, offsets),
        6 => put::<6>(out, offsets),
        7 => put::<7>(out, offsets),
        _ => put::<8>(out, offsets),
    }
}

/// The number at `index` in a column of numbers with up to eight bytes.
fn offset(column: &[u8], width: usize, index: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..width].copy_from_slice(&column[index * width..][..width]);
    u64::from_le_bytes(bytes)
}

impl<'a> Run<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let key = reader.index()?;
        let rows = reader.index()? as usize;
        let series = reader.index()?;
        let ts = reader.u64()?.cast_signed();
        let widths = reader.u8()?;
        let (series_width, ts_width) = (usize::from(widths & 15), usize::from(widths >> 4));
        if rows == 0 || series_width > 4 || ts_width > 8 {
            return Err(Malformed("a run has no rows or too wide columns"));
        }
        let columns = reader.take(rows.saturating_mul(series_width + ts_width + VALUE_BYTES))?;
        let run = Self { key, rows, series: (series, series_width), ts: (ts, ts_width), columns };
        let fits = |row| {
            let (series_offset, ts_offset) = run.offsets(row);
            series.checked_add(series_offset as u32).is_some() && ts.checked_add_unsigned(ts_offset).is_some()
        };
        match (0..rows).all(fits) {
            true => Ok(run),
            false => Err(Malformed("a run's series or time is too large")),
        }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// The series, the time and the value of each row.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, i64, f64)> {
        let values = &self.columns[self.rows * (self.series.1 + self.ts.1)..];
        (0..self.rows).map(move |row| {
            let (series, ts) = self.offsets(row);
            let value = f64::from_bits(offset(values, VALUE_BYTES, row));
            (self.series.0 + series as u32, self.ts.0.wrapping_add_unsigned(ts), value)
        })
    }

    fn offsets(&self, row: usize) -> (u64, u64) {
        let (series, rest) = self.columns.split_at(self.rows * self.series.1);
        (offset(series, self.series.1, row), offset(rest, self.ts.1, row))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(rows: &[(u32, i64, f64)]) -> Vec<u8> {
        let series: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let ts: Vec<i64> = rows.iter().map(|row| row.1).collect();
        let values: Vec<f64> = rows.iter().map(|row| row.2).collect();
        let mut out = Vec::new();
        put(&mut out, Numbers { key: 3, series: &series, ts: &ts, values: &values });
        out
    }

    proptest! {
        #[test]
        fn rows_come_back(
            rows in prop::collection::vec((any::<u32>(), any::<i64>(), any::<f64>()), 1..40),
            series_shift in 0..32_u32,
            ts_shift in 0..64_u32,
        ) {
            let rows: Vec<_> = rows.iter().map(|row| (row.0 >> series_shift, row.1 >> ts_shift, row.2)).collect();
            let bytes = encoded(&rows);
            let mut reader = Reader::new(&bytes);
            let run = Run::read(&mut reader).unwrap();
            prop_assert!(reader.is_empty());
            prop_assert_eq!((run.key, run.len()), (3, rows.len()));
            let bits = |(series, ts, value): (u32, i64, f64)| (series, ts, value.to_bits());
            prop_assert!(run.rows().map(bits).eq(rows.into_iter().map(bits)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(run) = Run::read(&mut Reader::new(&bytes)) {
                prop_assert_eq!(run.rows().count(), run.len());
            }
        }
    }

    #[test]
    fn equal_series_and_times_take_no_bytes() {
        let one = encoded(&[(7, -5, 0.5)]);
        let three = encoded(&[(7, -5, 0.5), (7, -5, 1.5), (7, -5, 2.5)]);
        assert_eq!(three.len() - one.len(), 16);
    }
}
