//! Versions: the parts at one moment. Readers share a version until the last of them drops it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::manifest::ManifestContent;
use crate::part::{Part, PartLayout};

/// All parts of the store at one moment.
#[derive(Debug, Default, Clone)]
pub(crate) struct Version {
    /// Wide parts, by table number.
    tables: Vec<Family>,
    narrow: Family,
    parts: u64,
    bytes: u64,
    parts_per_table: u64,
    overlap: usize,
    /// The number of changes since the store was opened.
    number: u64,
}

/// The parts that the compactor may merge with each other.
#[derive(Debug, Default, Clone)]
struct Family {
    /// By sequence, oldest first. Versions share the list, so the cost of a change depends on what it changes.
    parts: Arc<[Arc<Part>]>,
    overlap: usize,
}

/// The largest number of parts whose partitions have one moment in common.
pub(crate) fn overlap<'a>(parts: impl Iterator<Item = &'a Arc<Part>>) -> usize {
    let ends = |part: &'a Arc<Part>| [(part.info.partition.0, 1), (part.info.partition.1, -1)];
    let mut ends: Vec<(i64, isize)> = parts.flat_map(ends).collect();
    // Where one partition ends and another begins, the end comes first.
    ends.sort_unstable();
    let depths = ends.iter().scan(0, |depth, (_, step)| {
        *depth += step;
        Some(*depth)
    });
    depths.max().unwrap_or(0).unsigned_abs()
}

impl Version {
    /// The parts that may hold rows of one table, of either layout, oldest first.
    pub(crate) fn parts(&self, table: u32) -> impl Iterator<Item = &Arc<Part>> {
        self.narrow.parts.iter().filter(move |part| part.info.may_have(table)).chain(self.wide(table))
    }

    /// The narrow parts, oldest first.
    pub(crate) fn narrow(&self) -> &[Arc<Part>] {
        &self.narrow.parts
    }

    /// The wide parts of one table, oldest first.
    pub(crate) fn wide(&self, table: u32) -> &[Arc<Part>] {
        self.tables.get(table as usize).map_or(&[], |family| &family.parts)
    }

    /// The lists of parts that the compactor may merge with each other, each oldest first.
    pub(crate) fn families(&self) -> impl Iterator<Item = &[Arc<Part>]> {
        self.tables.iter().chain([&self.narrow]).map(|family| &*family.parts)
    }

    /// The families in which at least this many parts have a moment in common.
    pub(crate) fn families_overlapping(&self, parts: usize) -> impl Iterator<Item = &[Arc<Part>]> {
        // Returns early for nearly all versions, because every flush calls this.
        let families = (self.overlap >= parts).then(|| self.tables.iter().chain([&self.narrow]));
        let families = families.into_iter().flatten().filter(move |family| family.overlap >= parts);
        families.map(|family| &*family.parts)
    }

    /// The number of this version. No other version of this process has it.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The parts of all tables, of either layout.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Part>> {
        self.families().flatten()
    }

    /// Whether a manifest names these parts and no others.
    pub(crate) fn has_exactly(&self, manifest: &ManifestContent) -> bool {
        let known = self.all().filter(|part| manifest.parts.contains_key(&part.info.id)).count();
        known == manifest.parts.len() && known == self.all().count()
    }

    /// The number of all parts, and their bytes.
    pub(crate) fn size(&self) -> (u64, u64) {
        (self.parts, self.bytes)
    }

    /// The largest number of parts of one table.
    pub(crate) fn parts_per_table(&self) -> u64 {
        self.parts_per_table
    }

    /// The largest number of parts of one table that have a moment in common.
    pub(crate) fn overlap(&self) -> usize {
        self.overlap
    }

    /// The sequence of the newest row in the parts.
    pub(crate) fn sequence(&self) -> u64 {
        let newest = self.families().filter_map(|parts| parts.last());
        newest.map(|part| part.info.sequence.1).max().unwrap_or(0)
    }

    /// The next version: this one with more parts and without the dropped ones.
    pub(crate) fn with(&self, added: impl IntoIterator<Item = Part>, dropped: &[Arc<Part>]) -> Self {
        let mut next = Self { number: self.number + 1, ..self.clone() };
        let gone: HashSet<u64> = dropped.iter().map(|part| part.info.id).collect();
        let mut changes: BTreeMap<Option<u32>, Vec<Arc<Part>>> = BTreeMap::new();
        let family_of = |part: &Part| (part.info.layout == PartLayout::Wide).then_some(part.info.tables.0);
        for part in dropped {
            changes.entry(family_of(part)).or_default();
        }
        for part in added {
            changes.entry(family_of(&part)).or_default().push(Arc::new(part));
        }
        for (table, added) in changes {
            let family = match table {
                None => &mut next.narrow,
                Some(table) => {
                    let needed = next.tables.len().max(table as usize + 1);
                    next.tables.resize(needed, Family::default());
                    &mut next.tables[table as usize]
                }
            };
            let before = &*family.parts;
            let kept = before.iter().filter(|part| !gone.contains(&part.info.id)).cloned();
            let mut parts: Vec<Arc<Part>> = kept.chain(added).collect();
            parts.sort_by_key(|part| (part.info.sequence.1, part.info.id));
            let bytes = |parts: &[Arc<Part>]| parts.iter().map(|part| part.info.bytes).sum::<u64>();
            next.parts = next.parts - before.len() as u64 + parts.len() as u64;
            next.bytes = next.bytes - bytes(before) + bytes(&parts);
            *family = Family { overlap: overlap(parts.iter()), parts: parts.into() };
        }
        next.parts_per_table = next.families().map(|parts| parts.len() as u64).max().unwrap_or(0);
        next.overlap =
            next.tables.iter().chain([&next.narrow]).map(|family| family.overlap).max().unwrap_or(0);
        next
    }
}
