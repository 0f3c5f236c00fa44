//! The immutable parts at one moment, shared by readers until the last of them lets go.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::manifest::ManifestContent;
use crate::part::Part;
use crate::part::schema::Layout;

/// All parts of the store.
#[derive(Debug, Default, Clone)]
pub(crate) struct Version {
    /// Wide parts by table number; within a table by sequence, oldest first. Shared between versions, so that a change costs
    /// what it changes.
    tables: Vec<Arc<[Arc<Part>]>>,
    /// Narrow parts, in the same way.
    narrow: Arc<[Arc<Part>]>,
    parts: u64,
    bytes: u64,
    parts_per_table: u64,
    /// Changes since the store was opened.
    number: u64,
}

impl Version {
    /// The parts that may hold rows of one table, of either layout, oldest first.
    pub(crate) fn parts(&self, table: u32) -> impl Iterator<Item = &Arc<Part>> {
        self.narrow.iter().filter(move |part| part.info.may_have(table)).chain(self.wide(table))
    }

    /// The wide parts of one table, oldest first.
    pub(crate) fn wide(&self, table: u32) -> &[Arc<Part>] {
        self.tables.get(table as usize).map_or(&[], AsRef::as_ref)
    }

    /// Parts that may be merged with each other, oldest first.
    pub(crate) fn families(&self) -> impl Iterator<Item = &[Arc<Part>]> {
        self.tables.iter().chain([&self.narrow]).map(AsRef::as_ref)
    }

    /// Distinguishes this version from all others of this process.
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

    /// Number and bytes of all parts.
    pub(crate) fn size(&self) -> (u64, u64) {
        (self.parts, self.bytes)
    }

    /// Most parts of one table.
    pub(crate) fn parts_per_table(&self) -> u64 {
        self.parts_per_table
    }

    /// The newest row that a part holds.
    pub(crate) fn sequence(&self) -> u64 {
        let newest = self.families().filter_map(|parts| parts.last());
        newest.map(|part| part.info.sequence.1).max().unwrap_or(0)
    }

    /// This version with some more parts and without some.
    pub(crate) fn with(&self, added: impl IntoIterator<Item = Part>, dropped: &[Arc<Part>]) -> Self {
        let mut next = Self { number: self.number + 1, ..self.clone() };
        let gone: HashSet<u64> = dropped.iter().map(|part| part.info.id).collect();
        let mut changes: BTreeMap<Option<u32>, Vec<Arc<Part>>> = BTreeMap::new();
        let family = |part: &Part| (part.info.layout == Layout::Wide).then_some(part.info.tables.0);
        for part in dropped {
            changes.entry(family(part)).or_default();
        }
        for part in added {
            changes.entry(family(&part)).or_default().push(Arc::new(part));
        }
        for (table, added) in changes {
            let place = match table {
                None => &mut next.narrow,
                Some(table) => {
                    let needed = next.tables.len().max(table as usize + 1);
                    next.tables.resize(needed, Arc::default());
                    &mut next.tables[table as usize]
                }
            };
            let before = &*place;
            let kept = before.iter().filter(|part| !gone.contains(&part.info.id)).cloned();
            let mut parts: Vec<Arc<Part>> = kept.chain(added).collect();
            parts.sort_by_key(|part| (part.info.sequence.1, part.info.id));
            let bytes = |parts: &[Arc<Part>]| parts.iter().map(|part| part.info.bytes).sum::<u64>();
            next.parts = next.parts - before.len() as u64 + parts.len() as u64;
            next.bytes = next.bytes - bytes(before) + bytes(&parts);
            *place = parts.into();
        }
        next.parts_per_table = next.families().map(|parts| parts.len() as u64).max().unwrap_or(0);
        next
    }
}
