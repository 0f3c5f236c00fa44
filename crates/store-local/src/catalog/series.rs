//! Series by key, by number and by tag value, in about a hundred bytes each. docs/adr/0006-series-index.md.
//!
//! A key is the table number and the encoded tags. All keys are in one arena. The hash tables have only numbers, and the
//! text of a tag value is in the key of the first series that has the value.
//!
//! A number means the same series forever: a dropped series keeps its key here, and is only left out of searches. So a reader
//! may release the lock at any time and continue later.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use model::limits;
use store::SeriesSet;

use super::ids::Ids;
use super::numbers::Numbers;
use crate::codec::{Malformed, Reader, put_text, put_varint};

/// All series of a store.
#[derive(Default)]
pub(crate) struct SeriesIndex {
    keys: Keys,
    numbers: Numbers,
    hasher: RandomState,
    /// By table number.
    pub(super) tables: Vec<TableIndex>,
    /// The dropped series, which no search finds. Snapshots share the set.
    dropped: Arc<SeriesSet>,
}

/// The series of one table.
#[derive(Default)]
pub(super) struct TableIndex {
    pub(super) all: Ids,
    /// The number of dropped ones among them.
    dropped: u64,
    /// By tag number. Tags that no series has may be missing.
    pub(super) tags: Vec<TagIndex>,
}

/// The series of a table that have a tag, and their values.
#[derive(Default)]
pub(super) struct TagIndex {
    pub(super) present: Ids,
    values: Values,
    numbers: Numbers,
}

/// The distinct values of a tag, numbered in the order of their appearance, so that their first series ascend.
#[derive(Default)]
struct Values {
    postings: Vec<Posting>,
    /// The series of each value that more than one series has.
    shared: Vec<Ids>,
}

/// The series of a value: the number of the only one, or with the top bit set an index into `shared`.
#[derive(Clone, Copy)]
struct Posting(u32);

const SHARED: u32 = 1 << 31;
const _: () = assert!(limits::SERIES_MAX <= SHARED as usize, "a posting has a bit to spare");

/// The series of one tag value.
pub(super) enum TaggedSeries<'a> {
    One(u32),
    Shared(&'a Ids),
}

/// Table and tags of each series.
#[derive(Default)]
struct Keys {
    entries: Vec<KeyEntry>,
    arena: Vec<u8>,
}

#[derive(Clone, Copy)]
struct KeyEntry {
    table: u32,
    tags_len: u32,
    tags_start: u64,
}

pub(super) fn put_tag(out: &mut Vec<u8>, tag: u32, value: &str) {
    put_varint(out, tag.into());
    put_text(out, value);
}

/// The tag numbers and values of an encoded key.
pub(crate) fn tags(encoded: &[u8]) -> impl Iterator<Item = Result<(u32, &str), Malformed>> {
    let mut reader = Reader::new(encoded);
    let mut failed = false;
    std::iter::from_fn(move || {
        if failed || reader.is_empty() {
            return None;
        }
        let tag = reader.index().and_then(|tag| Ok((tag, reader.text()?)));
        failed = tag.is_err();
        Some(tag)
    })
}

/// The value of one tag in an encoded key that is known to be valid.
#[inline]
fn tag_value(encoded: &[u8], tag: u32) -> Option<&[u8]> {
    let mut reader = Reader::new(encoded);
    while !reader.is_empty() {
        let (found, value) = (reader.index().ok()?, reader.blob().ok()?);
        if found == tag {
            return Some(value);
        }
    }
    None
}

impl SeriesIndex {
    pub(crate) fn len(&self) -> usize {
        self.keys.entries.len()
    }

    /// The number of series that are not dropped.
    pub(crate) fn live(&self) -> usize {
        self.tables.iter().map(|index| index.all.len() - index.dropped).sum::<u64>() as usize
    }

    /// The table of the series with this number; `None` if there is no such series.
    #[inline]
    pub(crate) fn table(&self, id: u32) -> Option<u32> {
        self.keys.entries.get(id as usize).map(|entry| entry.table)
    }

    /// The number of series of a table.
    pub(crate) fn count(&self, table: u32) -> u64 {
        self.tables.get(table as usize).map_or(0, |index| index.all.len() - index.dropped)
    }

    /// The encoded tags of a series.
    #[inline]
    pub(crate) fn encoded_tags(&self, id: u32) -> &[u8] {
        self.keys.tags(id)
    }

    /// The value that a series has for one tag of its table.
    pub(crate) fn tag_value(&self, id: u32, tag: u32) -> Option<&str> {
        tag_value(self.keys.tags(id), tag).map(text)
    }

    pub(super) fn find(&self, table: u32, tags: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one((table, tags));
        self.numbers.find(hash, |id| self.keys.is(id, table, tags) && !self.dropped.contains(id))
    }

    pub(crate) fn dropped(&self) -> &Arc<SeriesSet> {
        &self.dropped
    }

    /// Drops series of a table. They need not be known yet. Returns whether one of them was not dropped before.
    pub(super) fn drop_series(&mut self, table: u32, series: &SeriesSet) -> bool {
        let new = series - &*self.dropped;
        let known = new.rank(self.len().saturating_sub(1) as u32);
        if let Some(index) = self.tables.get_mut(table as usize).filter(|_| !self.keys.entries.is_empty()) {
            index.dropped += known;
        }
        *Arc::make_mut(&mut self.dropped) |= &new;
        !new.is_empty()
    }

    /// Drops all series of a table.
    pub(super) fn drop_table(&mut self, table: u32) {
        let all = self.all_of(table);
        self.drop_series(table, &all);
    }

    /// All series of a table, the dropped ones included.
    pub(crate) fn all_of(&self, table: u32) -> SeriesSet {
        self.tables.get(table as usize).map(|index| index.all.to_bitmap()).unwrap_or_default()
    }

    /// Adds a series whose tags are valid tags of its table. A known series changes nothing. Returns whether it was new. A
    /// series of a dropped table is dropped at once.
    pub(super) fn insert(
        &mut self,
        id: u32,
        table: u32,
        tags: &[u8],
        dropped_table: bool,
    ) -> Result<bool, Malformed> {
        if (id as usize) < self.len() {
            return match self.keys.is(id, table, tags) {
                true => Ok(false),
                false => Err(Malformed("series number defined twice")),
            };
        }
        if id as usize != self.len() {
            return Err(Malformed("series number out of order"));
        }
        let Self { keys, numbers, hasher, tables, dropped } = self;
        if dropped_table {
            Arc::make_mut(dropped).insert(id);
        }
        let is_dropped = dropped.contains(id);
        let hash = hasher.hash_one((table, tags));
        let is_same = |id| keys.is(id, table, tags) && !dropped.contains(id);
        if !is_dropped && numbers.find(hash, is_same).is_some() {
            return Err(Malformed("series key defined twice"));
        }
        keys.push(table, tags);
        numbers.insert(hash, id);
        if tables.len() <= table as usize {
            tables.resize_with(table as usize + 1, TableIndex::default);
        }
        tables[table as usize].push(id, keys, hasher);
        tables[table as usize].dropped += u64::from(is_dropped);
        Ok(true)
    }

    /// The index of a table; `None` if the table has no series.
    pub(super) fn table_index(&self, table: u32) -> Option<&TableIndex> {
        self.tables.get(table as usize)
    }

    /// The series that have this value of a tag.
    pub(super) fn with_value<'a>(
        &self,
        index: &'a TagIndex,
        tag: u32,
        value: &str,
    ) -> Option<TaggedSeries<'a>> {
        let value = value.as_bytes();
        let is = |number| index.values.text(tag, number, &self.keys) == value;
        Some(index.series_of(index.numbers.find(self.hasher.hash_one(value), is)?))
    }

    /// The text of a value of a tag, by the number of the value.
    pub(super) fn text_of(&self, index: &TagIndex, tag: u32, number: u32) -> &str {
        text(index.values.text(tag, number, &self.keys))
    }
}

impl TableIndex {
    fn push(&mut self, id: u32, keys: &Keys, hasher: &RandomState) {
        self.all.push(id);
        let mut reader = Reader::new(keys.tags(id));
        while let (Ok(tag), Ok(value)) = (reader.index(), reader.blob()) {
            if self.tags.len() <= tag as usize {
                self.tags.resize_with(tag as usize + 1, TagIndex::default);
            }
            self.tags[tag as usize].push(id, tag, value, keys, hasher);
        }
    }
}

impl TagIndex {
    /// The number of values. Values are numbered from 0.
    pub(super) fn values(&self) -> u32 {
        self.values.postings.len() as u32
    }

    pub(super) fn series_of(&self, number: u32) -> TaggedSeries<'_> {
        self.values.series_of(number)
    }

    fn push(&mut self, id: u32, tag: u32, value: &[u8], keys: &Keys, hasher: &RandomState) {
        self.present.push(id);
        let hash = hasher.hash_one(value);
        match self.numbers.find(hash, |number| self.values.text(tag, number, keys) == value) {
            Some(number) => self.values.share(number, id),
            None => {
                self.numbers.insert(hash, self.values());
                self.values.postings.push(Posting(id));
            }
        }
    }
}

impl Values {
    fn series_of(&self, number: u32) -> TaggedSeries<'_> {
        let Posting(posting) = self.postings[number as usize];
        match posting & SHARED {
            0 => TaggedSeries::One(posting),
            _ => TaggedSeries::Shared(&self.shared[(posting ^ SHARED) as usize]),
        }
    }

    /// Adds a series to a value that has a series already.
    fn share(&mut self, number: u32, id: u32) {
        let Posting(posting) = &mut self.postings[number as usize];
        match *posting & SHARED {
            0 => {
                let index = self.shared.len() as u32;
                self.shared.push(Ids::pair(*posting, id));
                *posting = index | SHARED;
            }
            _ => self.shared[(*posting ^ SHARED) as usize].push(id),
        }
    }

    fn text<'a>(&self, tag: u32, number: u32, keys: &'a Keys) -> &'a [u8] {
        let first = match self.series_of(number) {
            TaggedSeries::One(id) => id,
            TaggedSeries::Shared(ids) => ids.first().expect("BUG: a shared value has two series at least"),
        };
        tag_value(keys.tags(first), tag).expect("BUG: a value's first series has the tag")
    }
}

impl Keys {
    fn push(&mut self, table: u32, tags: &[u8]) {
        let entry = KeyEntry { table, tags_len: tags.len() as u32, tags_start: self.arena.len() as u64 };
        self.arena.extend_from_slice(tags);
        self.entries.push(entry);
    }

    #[inline]
    fn tags(&self, id: u32) -> &[u8] {
        let entry = &self.entries[id as usize];
        let start = entry.tags_start as usize;
        &self.arena[start..start + entry.tags_len as usize]
    }

    #[inline]
    fn is(&self, id: u32, table: u32, tags: &[u8]) -> bool {
        self.entries[id as usize].table == table && self.tags(id) == tags
    }
}

fn text(value: &[u8]) -> &str {
    std::str::from_utf8(value).expect("BUG: tag values are checked before they are taken")
}
