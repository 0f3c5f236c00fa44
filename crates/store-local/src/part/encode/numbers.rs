//! Encodes columns of numbers. Tries the encodings on the first rows of each column chunk and takes the smallest.

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::schema::types::ColumnDescPtr;

use super::delta::{Widths, put_delta};
use super::pages::{ChunkPages, Compressor, Extremes, Presence};

/// The number of values of a trial.
const SAMPLE: usize = 4096;

/// The values of a column chunk, and the rows that have a value.
pub(crate) struct Column<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) rows: usize,
    pub(crate) present: Present<'a>,
}

/// The rows of a column chunk that have a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Present<'a> {
    /// All rows of a required column.
    Required,
    /// All rows of an optional column.
    All,
    /// These rows.
    Some(&'a [u32]),
}

/// The encodings of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberEncoding {
    Delta(Widths),
    Plain,
}

/// The encodings of doubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoubleEncoding {
    Plain,
    /// All first bytes, then all second bytes, and so on.
    Split,
}

impl NumberEncoding {
    pub(crate) const ALL: [Self; 3] = [Self::Delta(Widths::Bits), Self::Delta(Widths::Bytes), Self::Plain];

    pub(crate) fn put(self, out: &mut Vec<u8>, values: &[i64]) {
        match self {
            Self::Delta(widths) => put_delta(out, values, widths),
            Self::Plain => values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes())),
        }
    }

    fn name(self) -> Encoding {
        match self {
            Self::Delta(_) => Encoding::DELTA_BINARY_PACKED,
            Self::Plain => Encoding::PLAIN,
        }
    }
}

impl DoubleEncoding {
    pub(crate) const ALL: [Self; 2] = [Self::Split, Self::Plain];

    pub(crate) fn put(self, out: &mut Vec<u8>, values: &[f64]) {
        match self {
            Self::Plain => values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes())),
            Self::Split => {
                for byte in 0..size_of::<f64>() {
                    out.extend(values.iter().map(|value| value.to_le_bytes()[byte]));
                }
            }
        }
    }

    fn name(self) -> Encoding {
        match self {
            Self::Plain => Encoding::PLAIN,
            Self::Split => Encoding::BYTE_STREAM_SPLIT,
        }
    }
}

/// Writes a column of integers.
pub(crate) fn write_integers(
    column: &Column<'_, i64>,
    descriptor: ColumnDescPtr,
    compressor: &mut Compressor,
    page_rows: usize,
    page_statistics: bool,
) -> Result<(Bytes, ColumnCloseResult)> {
    let encoding = smallest(compressor, column.values, &NumberEncoding::ALL, NumberEncoding::put)?;
    write_integers_as(encoding, column, descriptor, compressor, page_rows, page_statistics)
}

/// Writes a column of integers in a given encoding.
pub(crate) fn write_integers_as(
    encoding: NumberEncoding,
    column: &Column<'_, i64>,
    descriptor: ColumnDescPtr,
    compressor: &mut Compressor,
    page_rows: usize,
    page_statistics: bool,
) -> Result<(Bytes, ColumnCloseResult)> {
    let mut pages = ChunkPages::new(descriptor, compressor, page_statistics);
    column.put_pages(&mut pages, page_rows, encoding.name(), |body, values| {
        encoding.put(body, values);
        page_statistics.then(|| extremes(values)).flatten()
    })?;
    let extremes = extremes(column.values).map(|(min, max)| Extremes::Numbers(min, max));
    pages.close(extremes)
}

/// Writes a column of doubles.
pub(crate) fn write_doubles(
    column: &Column<'_, f64>,
    descriptor: ColumnDescPtr,
    compressor: &mut Compressor,
    page_rows: usize,
) -> Result<(Bytes, ColumnCloseResult)> {
    let encoding = smallest(compressor, column.values, &DoubleEncoding::ALL, DoubleEncoding::put)?;
    write_doubles_as(encoding, column, descriptor, compressor, page_rows)
}

/// Writes a column of doubles in a given encoding.
pub(crate) fn write_doubles_as(
    encoding: DoubleEncoding,
    column: &Column<'_, f64>,
    descriptor: ColumnDescPtr,
    compressor: &mut Compressor,
    page_rows: usize,
) -> Result<(Bytes, ColumnCloseResult)> {
    let mut pages = ChunkPages::new(descriptor, compressor, false);
    column.put_pages(&mut pages, page_rows, encoding.name(), |body, values| {
        encoding.put(body, values);
        None
    })?;
    pages.close(double_extremes(column.values))
}

/// The encoding with the smallest result for the first values.
fn smallest<E: Copy, T>(
    compressor: &mut Compressor,
    values: &[T],
    encodings: &[E],
    put: impl Fn(E, &mut Vec<u8>, &[T]),
) -> Result<E> {
    let sample = &values[..values.len().min(SAMPLE)];
    let mut best = (usize::MAX, encodings[0]);
    let mut body = Vec::new();
    for encoding in encodings {
        body.clear();
        put(*encoding, &mut body, sample);
        let bytes = compressor.compress(&body)?.len();
        if bytes < best.0 {
            best = (bytes, *encoding);
        }
    }
    Ok(best.1)
}

fn extremes(values: &[i64]) -> Option<(i64, i64)> {
    Some((*values.iter().min()?, *values.iter().max()?))
}

/// The smallest and the largest value as Parquet requires them: none with NaN, and a zero counts as both zeros.
fn double_extremes(values: &[f64]) -> Option<Extremes> {
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        if value.is_nan() {
            return None;
        }
        min = min.min(*value);
        max = max.max(*value);
    }
    let min = if min == 0.0 { -0.0 } else { min };
    let max = if max == 0.0 { 0.0 } else { max };
    (min <= max).then_some(Extremes::Doubles(min, max))
}

impl<'a, T> Column<'a, T> {
    /// Writes all pages of the column. `put` encodes values with `encoding`, and returns the smallest and the largest value
    /// for the statistics of the page.
    fn put_pages(
        &self,
        pages: &mut ChunkPages<'_>,
        page_rows: usize,
        encoding: Encoding,
        put: impl Fn(&mut Vec<u8>, &[T]) -> Option<(i64, i64)>,
    ) -> Result<()> {
        let mut body = Vec::new();
        for (presence, values) in self.pages(page_rows) {
            body.clear();
            presence.put_levels(&mut body);
            let extremes = put(&mut body, values);
            pages.data(&body, encoding, presence, extremes)?;
        }
        Ok(())
    }

    /// The rows and the values of each page.
    fn pages(&self, page_rows: usize) -> impl Iterator<Item = (Presence<'a>, &'a [T])> {
        let (rows, mut present, mut values) = (self.rows, self.present, self.values);
        let page_rows = page_rows.max(1);
        (0..rows).step_by(page_rows).map(move |start| {
            let count = page_rows.min(rows - start);
            let presence = match &mut present {
                Present::Required => Presence::Required(count),
                Present::All => Presence::All(count),
                Present::Some(all) => {
                    let end = all.partition_point(|row| (*row as usize) < start + count);
                    let (here, later) = all.split_at(end);
                    *all = later;
                    match here.len() == count {
                        true => Presence::All(count),
                        false => Presence::Some(count, here, start as u32),
                    }
                }
            };
            let (here, later) = values.split_at(count - presence.nulls());
            values = later;
            (presence, here)
        })
    }
}
