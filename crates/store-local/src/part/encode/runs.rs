//! Columns whose value is the same for all rows of a series: written by run, whatever the number of rows.

use std::collections::HashMap;

use bytes::Bytes;
use foldhash::fast::RandomState;
use parquet::basic::Encoding;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::schema::types::ColumnDescPtr;

use super::delta::{Widths, put_delta};
use super::hybrid::{HybridWriter, width_of};
use super::numbers::{Column, Present, write_integers};
use super::pages::{ChunkPages, Compressor, Extremes, Presence};

/// Up to one distinct value in this many rows a dictionary is smaller than values that share prefixes.
const ROWS_PER_DICTIONARY_VALUE: usize = 4;

/// Writes a required column of numbers, each given with the row at which its run ends; ascending rows.
pub(crate) fn write_number_runs(
    runs: &[(i64, usize)],
    descriptor: ColumnDescPtr,
    compressor: &mut Compressor,
    page_rows: usize,
) -> Result<(Bytes, ColumnCloseResult)> {
    let rows = runs.last().map_or(0, |run| run.1);
    if runs.len() * ROWS_PER_DICTIONARY_VALUE > rows {
        let mut values = Vec::with_capacity(rows);
        runs.iter().for_each(|(value, end)| values.resize(*end, *value));
        let column = Column { values: &values, rows, present: Present::Required };
        return write_integers(&column, descriptor, compressor, page_rows, true);
    }
    let mut plain = Vec::with_capacity(8 * runs.len());
    runs.iter().for_each(|(value, _)| plain.extend_from_slice(&value.to_le_bytes()));
    let mut pages = ChunkPages::new(descriptor, compressor, true);
    pages.dictionary(&plain, runs.len())?;
    let indices = (0..runs.len()).map(|index| (Some(index as u32), runs[index].1));
    let width = width_of(runs.len() as u64 - 1);
    let extremes = |from: usize, to: usize| {
        let values = runs[from..=to].iter().map(|run| run.0);
        values.fold((i64::MAX, i64::MIN), |(min, max), value| (min.min(value), max.max(value)))
    };
    for page in cut(&indices.collect::<Vec<_>>(), page_rows) {
        let mut body = vec![width as u8];
        let mut indices = HybridWriter::new(&mut body, width);
        page.iter().for_each(|(index, rows)| indices.run(index.unwrap_or(0), *rows));
        indices.finish();
        let rows = page.iter().map(|run| run.1).sum();
        let (first, last) = (page.first().and_then(|run| run.0), page.last().and_then(|run| run.0));
        let extremes = first.zip(last).map(|(first, last)| extremes(first as usize, last as usize));
        pages.data(&body, Encoding::RLE_DICTIONARY, Presence::Required(rows), extremes)?;
    }
    let (min, max) = extremes(0, runs.len() - 1);
    pages.close(Some(Extremes::Numbers(min, max)))
}

/// Writes an optional text column, each value given with the row at which its run ends.
pub(crate) fn write_text_runs(
    runs: &[(Option<&str>, usize)],
    descriptor: ColumnDescPtr,
    compressor: &mut Compressor,
    page_rows: usize,
) -> Result<(Bytes, ColumnCloseResult)> {
    let rows = runs.last().map_or(0, |run| run.1);
    let mut numbers: HashMap<&str, u32, RandomState> = HashMap::default();
    let mut distinct: Vec<&str> = Vec::new();
    let mut indices: Vec<(Option<u32>, usize)> = Vec::with_capacity(runs.len());
    for (value, end) in runs {
        let index = value.map(|value| {
            *numbers.entry(value).or_insert_with(|| {
                distinct.push(value);
                distinct.len() as u32 - 1
            })
        });
        match indices.last_mut() {
            Some(last) if last.0 == index => last.1 = *end,
            _ => indices.push((index, *end)),
        }
    }
    let mut pages = ChunkPages::new(descriptor, compressor, false);
    let dictionary = distinct.len() * ROWS_PER_DICTIONARY_VALUE <= rows;
    if dictionary {
        let mut plain = Vec::new();
        for value in &distinct {
            plain.extend_from_slice(&(value.len() as u32).to_le_bytes());
            plain.extend_from_slice(value.as_bytes());
        }
        pages.dictionary(&plain, distinct.len())?;
    }
    let width = width_of(distinct.len().saturating_sub(1) as u64);
    for page in cut(&indices, page_rows) {
        let rows = page.iter().map(|run| run.1).sum();
        let present = rows_with_value(&page);
        let presence = match &present {
            None => Presence::All(rows),
            Some(present) => Presence::Some(rows, present, 0),
        };
        let mut body = Vec::new();
        presence.put_levels(&mut body);
        let values = page.iter().filter_map(|(index, rows)| Some(((*index)?, *rows)));
        let encoding = match dictionary {
            true => {
                body.push(width as u8);
                let mut indices = HybridWriter::new(&mut body, width);
                values.for_each(|(index, rows)| indices.run(index, rows));
                indices.finish();
                Encoding::RLE_DICTIONARY
            }
            false => {
                let values = values.map(|(index, rows)| (distinct[index as usize].as_bytes(), rows));
                put_shared_prefixes(&mut body, values);
                Encoding::DELTA_BYTE_ARRAY
            }
        };
        pages.data(&body, encoding, presence, None)?;
    }
    pages.close(None)
}

/// DELTA_BYTE_ARRAY: of each value how much it shares with the one before, and the rest.
fn put_shared_prefixes<'a>(out: &mut Vec<u8>, values: impl Iterator<Item = (&'a [u8], usize)>) {
    let (mut prefixes, mut lengths, mut suffixes) = (Vec::new(), Vec::new(), Vec::new());
    let mut before: &[u8] = &[];
    for (value, rows) in values {
        let shared = before.iter().zip(value).take_while(|(a, b)| a == b).count();
        prefixes.push(shared as i64);
        lengths.push((value.len() - shared) as i64);
        suffixes.extend_from_slice(&value[shared..]);
        prefixes.extend(std::iter::repeat_n(value.len() as i64, rows - 1));
        lengths.extend(std::iter::repeat_n(0, rows - 1));
        before = value;
    }
    put_delta(out, &prefixes, Widths::Bits);
    put_delta(out, &lengths, Widths::Bits);
    out.extend_from_slice(&suffixes);
}

/// Cuts runs, given with their ends, into pages of runs, given with their lengths.
fn cut(runs: &[(Option<u32>, usize)], page_rows: usize) -> Vec<Vec<(Option<u32>, usize)>> {
    let page_rows = page_rows.max(1);
    let mut pages: Vec<Vec<(Option<u32>, usize)>> = Vec::new();
    let mut at = 0;
    for (index, end) in runs {
        while at < *end {
            if at % page_rows == 0 {
                pages.push(Vec::new());
            }
            let count = (page_rows - at % page_rows).min(*end - at);
            pages.last_mut().expect("BUG: row 0 begins a page").push((*index, count));
            at += count;
        }
    }
    pages
}

/// The rows of a page that have a value; `None` when all have.
fn rows_with_value(page: &[(Option<u32>, usize)]) -> Option<Vec<u32>> {
    if page.iter().all(|(index, _)| index.is_some()) {
        return None;
    }
    let mut present = Vec::new();
    let mut at = 0;
    for (index, rows) in page {
        if index.is_some() {
            present.extend(at..at + *rows as u32);
        }
        at += *rows as u32;
    }
    Some(present)
}
