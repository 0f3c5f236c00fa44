//! Encodes columns whose value is the same for all rows of a series. The cost depends on the runs, not on the rows.

use std::collections::{HashMap, HashSet};

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

/// A dictionary is smaller than values that share prefixes up to one distinct value in this many rows.
const ROWS_PER_DICTIONARY_VALUE: usize = 4;
/// The number of runs in a sample that shows whether most texts are different.
const SAMPLED_RUNS: usize = 2 * 1024;

/// Writes a required column of numbers. Each number has the row at which its run ends; the rows ascend.
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

/// Writes an optional text column. Each value has the row at which its run ends.
pub(crate) fn write_text_runs(
    runs: &[(Option<&str>, usize)],
    descriptor: ColumnDescPtr,
    compressor: &mut Compressor,
    page_rows: usize,
) -> Result<(Bytes, ColumnCloseResult)> {
    let rows = runs.last().map_or(0, |run| run.1);
    let Numbered { distinct, indices } = match is_mostly_distinct(runs, rows) {
        true => Numbered::all(runs),
        false => Numbered::found(runs),
    };
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

/// The texts of runs by number, and for each run of equal numbers the row at which it ends.
struct Numbered<'a> {
    distinct: Vec<&'a str>,
    indices: Vec<(Option<u32>, usize)>,
}

impl<'a> Numbered<'a> {
    fn with_capacity(runs: usize) -> Self {
        Self { distinct: Vec::new(), indices: Vec::with_capacity(runs) }
    }

    /// Gives each text one number.
    fn found(runs: &[(Option<&'a str>, usize)]) -> Self {
        let mut numbers: HashMap<&str, u32, RandomState> = HashMap::default();
        let mut numbered = Self::with_capacity(runs.len());
        for (value, end) in runs {
            let index = value.map(|value| *numbers.entry(value).or_insert_with(|| numbered.add(value)));
            numbered.push(index, *end);
        }
        numbered
    }

    /// May give a text several numbers. For runs that nearly all have a text of their own, where the search for equal texts
    /// would be most of the work.
    fn all(runs: &[(Option<&'a str>, usize)]) -> Self {
        let mut numbered = Self::with_capacity(runs.len());
        numbered.distinct.reserve(runs.len());
        for (value, end) in runs {
            let index = value.map(|value| match numbered.distinct.last() {
                Some(last) if *last == value => numbered.distinct.len() as u32 - 1,
                _ => numbered.add(value),
            });
            numbered.push(index, *end);
        }
        numbered
    }

    fn add(&mut self, value: &'a str) -> u32 {
        self.distinct.push(value);
        self.distinct.len() as u32 - 1
    }

    fn push(&mut self, index: Option<u32>, end: usize) {
        match self.indices.last_mut() {
            Some(last) if last.0 == index => last.1 = end,
            _ => self.indices.push((index, end)),
        }
    }
}

/// Whether the runs have so many texts that a dictionary cannot be smaller. Among n random runs with d texts about n² / 2d
/// pairs are equal (the birthday paradox): 2 n² / rows for the largest d with a smaller dictionary, n² / rows for twice as
/// many. n is `SAMPLED_RUNS`.
fn is_mostly_distinct(runs: &[(Option<&str>, usize)], rows: usize) -> bool {
    // A sample as large as all runs would save nothing.
    if runs.len() < 4 * SAMPLED_RUNS || runs.len() * ROWS_PER_DICTIONARY_VALUE <= rows {
        return false;
    }
    let mut seen: HashSet<&str, RandomState> = HashSet::default();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut equal = 0;
    for _ in 0..SAMPLED_RUNS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let at = (u128::from(random) * runs.len() as u128) >> 64;
        equal += usize::from(runs[at as usize].0.is_none_or(|text| !seen.insert(text)));
    }
    2 * equal * rows < 3 * SAMPLED_RUNS * SAMPLED_RUNS
}

/// The length of the common prefix of two texts in bytes.
#[inline]
fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    const WORD: usize = size_of::<u64>();
    let most = a.len().min(b.len());
    let mut at = 0;
    while at + WORD <= most {
        let word = |text: &[u8]| u64::from_le_bytes(text[at..at + WORD].try_into().unwrap_or_default());
        let differs = word(a) ^ word(b);
        if differs != 0 {
            return at + (differs.trailing_zeros() / u8::BITS) as usize;
        }
        at += WORD;
    }
    at + a[at..most].iter().zip(&b[at..most]).take_while(|(a, b)| a == b).count()
}

/// DELTA_BYTE_ARRAY: for each value the length of the prefix that it shares with the previous value, and the rest.
fn put_shared_prefixes<'a>(out: &mut Vec<u8>, values: impl Iterator<Item = (&'a [u8], usize)>) {
    let (mut prefixes, mut lengths, mut suffixes) = (Vec::new(), Vec::new(), Vec::new());
    let mut before: &[u8] = &[];
    for (value, rows) in values {
        let shared = shared_prefix(before, value);
        prefixes.push(shared as i64);
        lengths.push((value.len() - shared) as i64);
        suffixes.extend_from_slice(&value[shared..]);
        if rows > 1 {
            prefixes.extend(std::iter::repeat_n(value.len() as i64, rows - 1));
            lengths.extend(std::iter::repeat_n(0, rows - 1));
        }
        before = value;
    }
    put_delta(out, &prefixes, Widths::Bits);
    put_delta(out, &lengths, Widths::Bits);
    out.extend_from_slice(&suffixes);
}

/// Splits runs with their ends into pages of runs with their lengths.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shared_prefixes_are_counted(a in "[ab]{0,20}", b in "[ab]{0,20}") {
            let expected = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(shared_prefix(a.as_bytes(), b.as_bytes()), expected);
        }
    }

    #[test]
    fn texts_are_numbered_once_each_or_as_they_come() {
        let runs = [(Some("a"), 2), (Some("b"), 3), (Some("b"), 5), (None, 6), (Some("a"), 9)];
        let found = Numbered::found(&runs);
        assert_eq!(found.distinct, ["a", "b"]);
        assert_eq!(found.indices, [(Some(0), 2), (Some(1), 5), (None, 6), (Some(0), 9)]);
        let all = Numbered::all(&runs);
        assert_eq!(all.distinct, ["a", "b", "a"]);
        assert_eq!(all.indices, [(Some(0), 2), (Some(1), 5), (None, 6), (Some(2), 9)]);
    }

    #[test]
    fn a_sample_tells_many_texts_from_few() {
        let mostly = |distinct: usize, rows_each: usize| {
            let texts: Vec<String> = (0..distinct).map(|number| format!("host-{number}")).collect();
            let runs: Vec<_> = (0..65_536)
                .map(|run| (Some(texts[run % distinct].as_str()), (run + 1) * rows_each))
                .collect();
            is_mostly_distinct(&runs, 65_536 * rows_each)
        };
        assert!(mostly(65_536, 1));
        assert!(!mostly(65_536 / 8, 1), "eight rows each are for a dictionary");
        assert!(!mostly(10, 1));
        assert!(!mostly(65_536, 8), "as many rows of each series");
    }
}
