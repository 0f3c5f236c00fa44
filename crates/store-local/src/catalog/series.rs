//! Series by key and by number, in a few dozen bytes each.
//!
//! A key is the table number and the encoded tags. All keys stand in one arena; the hash table holds numbers only.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::codec::{Malformed, Reader, put_text, put_varint};

/// All series of a store.
#[derive(Default)]
pub(crate) struct SeriesIndex {
    numbers: HashTable<u32>,
    entries: Vec<Slot>,
    arena: Vec<u8>,
    hasher: RandomState,
}

#[derive(Clone, Copy)]
struct Slot {
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

impl SeriesIndex {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The table of a series, if there is one with this number.
    #[inline]
    pub(crate) fn table(&self, id: u32) -> Option<u32> {
        self.entries.get(id as usize).map(|slot| slot.table)
    }

    /// The encoded tags of a series.
    pub(crate) fn encoded_tags(&self, id: u32) -> &[u8] {
        self.tags_of(&self.entries[id as usize])
    }

    pub(super) fn find(&self, table: u32, tags: &[u8]) -> Option<u32> {
        let found = self.numbers.find(self.hash(table, tags), |id| {
            let slot = &self.entries[*id as usize];
            slot.table == table && self.tags_of(slot) == tags
        });
        found.copied()
    }

    pub(super) fn insert(&mut self, id: u32, table: u32, tags: &[u8]) -> Result<bool, Malformed> {
        if let Some(slot) = self.entries.get(id as usize) {
            return match slot.table == table && self.tags_of(slot) == tags {
                true => Ok(false),
                false => Err(Malformed("series number defined twice")),
            };
        }
        if id as usize != self.entries.len() {
            return Err(Malformed("series number out of order"));
        }
        if self.find(table, tags).is_some() {
            return Err(Malformed("series key defined twice"));
        }
        let slot = Slot { table, tags_len: tags.len() as u32, tags_start: self.arena.len() as u64 };
        self.arena.extend_from_slice(tags);
        self.entries.push(slot);
        let hash = self.hash(table, tags);
        let Self { numbers, entries, arena, hasher } = self;
        numbers.insert_unique(hash, id, |id| {
            let slot = &entries[*id as usize];
            hasher.hash_one((slot.table, tags_in(arena, slot)))
        });
        Ok(true)
    }

    fn hash(&self, table: u32, tags: &[u8]) -> u64 {
        self.hasher.hash_one((table, tags))
    }

    fn tags_of(&self, slot: &Slot) -> &[u8] {
        tags_in(&self.arena, slot)
    }
}

fn tags_in<'a>(arena: &'a [u8], slot: &Slot) -> &'a [u8] {
    let start = slot.tags_start as usize;
    &arena[start..start + slot.tags_len as usize]
}
