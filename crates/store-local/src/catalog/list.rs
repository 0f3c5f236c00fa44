//! Lists series and values of tags from the index. Each slice is copied under the lock and visited without it, so that a new series
//! need not wait for a visitor.

use std::collections::HashSet;
use std::ops::ControlFlow;

use foldhash::fast::RandomState;
use parking_lot::RwLock;
use store::{SeriesSet, SeriesVisitor, TagColumn};

use super::series::{SeriesIndex, TaggedSeries, tags};
use crate::codec::Malformed;

/// Number of series or values that are copied under one lock.
const SLICE: usize = 1024;

/// Visits the series of a set. `columns` are the tags of their table in the order of their numbers.
pub(crate) fn each_series(
    index: &RwLock<SeriesIndex>,
    series: &SeriesSet,
    columns: &[TagColumn],
    visit: &mut SeriesVisitor<'_>,
) -> ControlFlow<()> {
    let (mut encoded, mut ends) = (Vec::new(), Vec::new());
    let mut rest = series.iter();
    let mut slice = [0; SLICE];
    loop {
        let slice = rest.next_many(&mut slice);
        if slice.is_empty() {
            return ControlFlow::Continue(());
        }
        encoded.clear();
        ends.clear();
        {
            let index = index.read();
            for id in &*slice {
                encoded.extend_from_slice(index.encoded_tags(*id));
                ends.push(encoded.len());
            }
        }
        let mut pairs = Vec::new();
        let mut start = 0;
        for (id, end) in slice.iter().zip(&ends) {
            pairs.clear();
            for tag in tags(&encoded[start..*end]) {
                let (tag, value) =
                    tag.unwrap_or_else(|Malformed(reason)| unreachable!("BUG: a known series has {reason}"));
                pairs.push((&*columns[tag as usize].tag, value));
            }
            pairs.sort_unstable();
            start = *end;
            visit(*id, &pairs)?;
        }
    }
}

/// Visits the distinct values that the series of a set have for a tag of their table.
pub(crate) fn tag_values(
    index: &RwLock<SeriesIndex>,
    table: u32,
    tag: u32,
    series: &SeriesSet,
    visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let values = {
        let index = index.read();
        index.table_index(table).and_then(|of| of.tags.get(tag as usize)).map_or(0, |of| of.values())
    };
    match series.len() < u64::from(values) {
        true => values_of_series(index, tag, series, visit),
        false => values_with_series(index, (table, tag), values, series, visit),
    }
}

/// Looks at each series.
fn values_of_series(
    index: &RwLock<SeriesIndex>,
    tag: u32,
    series: &SeriesSet,
    visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut known: HashSet<String, RandomState> = HashSet::default();
    let mut rest = series.iter();
    let mut slice = [0; SLICE];
    loop {
        let slice = rest.next_many(&mut slice);
        if slice.is_empty() {
            return ControlFlow::Continue(());
        }
        let mut new = Texts::default();
        {
            let index = index.read();
            for value in slice.iter().filter_map(|id| index.tag_value(*id, tag)) {
                if !known.contains(value) {
                    known.insert(value.to_owned());
                    new.push(value);
                }
            }
        }
        new.each(visit)?;
    }
}

/// Looks at each value.
fn values_with_series(
    index: &RwLock<SeriesIndex>,
    (table, tag): (u32, u32),
    values: u32,
    series: &SeriesSet,
    visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut next = 0;
    while next < values {
        let slice = next..values.min(next + SLICE as u32);
        next = slice.end;
        let mut found = Texts::default();
        {
            let index = index.read();
            let of_table = index.table_index(table).expect("BUG: a table with values has series");
            let of_tag = &of_table.tags[tag as usize];
            for number in slice {
                let has_series = match of_tag.series_of(number) {
                    TaggedSeries::One(id) => series.contains(id),
                    TaggedSeries::Shared(ids) => ids.has_any_of(series),
                };
                if has_series {
                    found.push(index.text_of(of_tag, tag, number));
                }
            }
        }
        found.each(visit)?;
    }
    ControlFlow::Continue(())
}

/// Copies of texts, in one allocation.
#[derive(Default)]
struct Texts {
    all: String,
    ends: Vec<usize>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len());
    }

    fn each(&self, visit: &mut dyn FnMut(&str) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut start = 0;
        for end in &self.ends {
            visit(&self.all[start..*end])?;
            start = *end;
        }
        ControlFlow::Continue(())
    }
}
