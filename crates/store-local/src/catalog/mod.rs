//! The catalog: all tables, columns, tags and series, and the numbers that the files use for them.
//!
//! Numbers are dense and never reused. A key of a table has one number. A column is (key, type), and has a physical name
//! in parts: the key for the first type, `key:type` for other types or if the plain name is taken. A definition can be
//! applied twice, because recovery finds the definitions of the manifest in the log again.
//!
//! A dropped key keeps its number and the physical names of its columns, because parts may still have them. A key that
//! comes again under the same name is a new key: its columns have other physical names, and readers see them under the
//! names that the dropped columns left free. A dropped series and a dropped table keep their numbers too, and the same tags or the same
//! name make a new series or table.

mod gaps;
mod ids;
mod limit;
mod list;
mod numbers;
mod select;
mod series;
mod slot;
mod table;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use model::{FieldType, SeriesKey, TableName, limits};
use parking_lot::RwLock;
use store::{
    DefinitionCounts, DefinitionLimits, Definitions, FieldColumn, StoreError, TableColumns, TagColumn,
};

pub(crate) use limit::check;
pub(crate) use list::{each_series, tag_values};
pub(crate) use select::{Condition, select};
pub(crate) use series::{SeriesIndex, tags};
pub(crate) use slot::Slot;

use crate::codec::{Malformed, Reader};
use crate::entry::{Entry, series_set};
use crate::row::KeyId;

/// Column of the series number in parts.
pub(crate) const SERIES_COLUMN: &str = "__series";
/// A column that parts had before the first release. Parts that were kept since then may have it, so the name stays taken.
const SEQUENCE_COLUMN: &str = "__sequence";
/// Column of the row's time in parts.
pub(crate) const TS_COLUMN: &str = "ts";

/// A series entry without the definition of its table before it.
pub(crate) const TABLE_OF_SERIES_MISSING: Malformed = Malformed("series of an unknown table");
/// A series entry without the definition of one of its tags before it.
pub(crate) const TAG_OF_SERIES_MISSING: Malformed = Malformed("series with an unknown tag");

/// All definitions, and the list of those that manifest and series file do not have yet.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) tables: Vec<Table>,
    /// Readers take this lock without the lock of the state. A thread that holds this lock must not wait for that one.
    pub(crate) series: Arc<RwLock<SeriesIndex>>,
    table_numbers: HashMap<TableName, u32, RandomState>,
    /// Encoded table, column and tag entries for the next manifest edit.
    unsaved: Vec<u8>,
    /// The time by which retention dropped rows last, as the manifest records it.
    pub(crate) retention: Option<i64>,
    dropped_tables: usize,
    /// What is defined for each namespace.
    counts: DefinitionCounts,
    /// Who limits new definitions.
    pub(crate) limits: Option<Arc<dyn DefinitionLimits>>,
    /// Number of definitions that [`fill_gaps`](Self::fill_gaps) has made up.
    stand_ins: usize,
}

/// The definitions of one table: keys, columns and tags.
pub(crate) struct Table {
    pub(crate) name: TableName,
    /// The number of its namespace in the counts of definitions.
    namespace: usize,
    pub(crate) keys: Vec<Key>,
    pub(crate) tags: Vec<Tag>,
    /// How long the store keeps the rows, in microseconds; 0 means forever. `None` without a setting.
    pub(crate) ttl_us: Option<u64>,
    pub(crate) dropped: bool,
    /// Key numbers. Each has a bit for every type that has a column.
    key_numbers: HashMap<Arc<str>, (KeyId, u8), RandomState>,
    /// Physical names in use, those of dropped keys among them.
    taken: HashSet<Arc<str>, RandomState>,
    /// The names under which readers see columns, by physical name, where the two differ.
    shown: HashMap<Arc<str>, Arc<str>, RandomState>,
    dropped_keys: usize,
    /// The columns of dropped keys.
    dropped_columns: usize,
    /// The columns as readers see them. The first reader after a change computes them.
    view: OnceLock<Arc<TableView>>,
}

/// A key and its columns by type.
pub(crate) struct Key {
    pub(crate) name: Arc<str>,
    /// Physical names by type.
    columns: [Option<Arc<str>>; FieldType::ALL.len()],
    dropped: bool,
}

/// A tag, and the column that shows it in parts.
pub(crate) struct Tag {
    pub(crate) name: Arc<str>,
    pub(crate) physical: Arc<str>,
}

/// The columns of a table, as its definitions say.
#[derive(Debug)]
pub(crate) struct TableView {
    /// As readers see them.
    pub(crate) columns: TableColumns,
    /// The key of each field column.
    pub(crate) keys: Vec<KeyId>,
    /// The columns of parts and chunks, key by key.
    pub(crate) stored: Vec<Slot>,
}

impl TableView {
    pub(crate) fn new(table: &Table) -> Self {
        let tag = |tag: &Tag| TagColumn { tag: tag.name.clone(), column: tag.physical.clone() };
        let of_key = |(id, key): (KeyId, &Key)| {
            let column = |field_type| {
                let physical = key.column(field_type)?.clone();
                Some(Slot { key: id, field_type, physical })
            };
            FieldType::ALL.into_iter().filter_map(column).collect::<Vec<_>>()
        };
        let tags = table.tags.iter().map(tag).collect();
        let stored: Vec<Slot> = table.live_keys().flat_map(of_key).collect();
        let field = |slot: &Slot| FieldColumn {
            key: table.keys[slot.key as usize].name.clone(),
            field_type: slot.field_type,
            column: table.shown(&slot.physical).clone(),
            with_integers: false,
        };
        let fields = stored.iter().map(field).collect();
        // Joined columns have other positions, but the columns of a key are still neighbours.
        let keys = stored.iter().map(|slot| slot.key).collect();
        Self { columns: TableColumns { table: table.name.clone(), tags, fields }.joined(), keys, stored }
    }

    pub(crate) fn columns(&self) -> &TableColumns {
        &self.columns
    }
}

fn type_bit(field_type: FieldType) -> u8 {
    1 << field_type.code()
}

impl Key {
    /// The physical name of the key's column of one type.
    #[inline]
    pub(crate) fn column(&self, field_type: FieldType) -> Option<&Arc<str>> {
        self.columns[field_type.code() as usize - 1].as_ref()
    }
}

impl Table {
    fn new(name: TableName, namespace: usize) -> Self {
        let internal = [SERIES_COLUMN, SEQUENCE_COLUMN, TS_COLUMN];
        Self {
            name,
            namespace,
            keys: Vec::new(),
            tags: Vec::new(),
            ttl_us: None,
            dropped: false,
            key_numbers: HashMap::default(),
            taken: internal.into_iter().map(Arc::from).collect(),
            shown: HashMap::default(),
            dropped_keys: 0,
            dropped_columns: 0,
            view: OnceLock::new(),
        }
    }

    /// The number of a key.
    #[inline]
    pub(crate) fn key(&self, name: &str) -> Option<KeyId> {
        self.key_numbers.get(name).map(|(key, _)| *key)
    }

    /// The number of a key that has a column of this type.
    #[inline]
    pub(crate) fn column_key(&self, name: &str, field_type: FieldType) -> Option<KeyId> {
        let (key, types) = self.key_numbers.get(name)?;
        (types & type_bit(field_type) != 0).then_some(*key)
    }

    /// The number of a tag. A table has few.
    #[inline]
    pub(crate) fn tag(&self, name: &str) -> Option<u32> {
        self.tags.iter().position(|tag| *tag.name == *name).map(|tag| tag as u32)
    }

    /// Whether the table has one field, an f64: then its rows go to narrow parts.
    pub(crate) fn is_narrow(&self) -> bool {
        match self.keys.as_slice() {
            [key] => FieldType::ALL.into_iter().all(|of| key.column(of).is_some() == (of == FieldType::F64)),
            _ => false,
        }
    }

    /// The number of columns, without the internal ones and those of dropped keys.
    pub(crate) fn columns(&self) -> usize {
        self.taken.len() - 3 - self.dropped_columns
    }

    /// The keys that are not dropped, with their numbers.
    pub(crate) fn live_keys(&self) -> impl Iterator<Item = (KeyId, &Key)> {
        let numbered = (0..).zip(&self.keys);
        numbered.filter(|(_, key)| !key.dropped)
    }

    /// The numbers of the dropped keys, ascending.
    pub(crate) fn dropped_keys(&self) -> Vec<KeyId> {
        let numbered = (0..).zip(&self.keys);
        numbered.filter(|(_, key)| key.dropped).map(|(number, _)| number).collect()
    }

    /// Whether a key was dropped.
    #[inline]
    pub(crate) fn is_dropped(&self, key: KeyId) -> bool {
        self.dropped_keys > 0 && self.keys[key as usize].dropped
    }

    /// The name under which readers see a column.
    pub(crate) fn shown<'a>(&'a self, physical: &'a Arc<str>) -> &'a Arc<str> {
        self.shown.get(physical).unwrap_or(physical)
    }

    /// The columns as readers see them.
    pub(crate) fn view(&self) -> Arc<TableView> {
        self.view.get_or_init(|| Arc::new(TableView::new(self))).clone()
    }

    /// A free physical name for `name`, if possible the plain one. Readers do not know the name yet, so the columns that
    /// they know keep their names.
    fn free_name(&self, name: &str, suffix: &str) -> Arc<str> {
        // Names that readers know and that no column in the files has end with `:i64`.
        let is_shown = |name: &str| name.ends_with(":i64") && self.view().columns().has_column(name);
        TableColumns::free_name(name, suffix, |name| self.taken.contains(name) || is_shown(name))
    }
}

impl Catalog {
    /// The number of a table.
    pub(crate) fn table(&self, name: &TableName) -> Option<u32> {
        self.table_numbers.get(name).copied()
    }

    /// Finds a series by its key.
    pub(crate) fn find_series(&self, key: &SeriesKey) -> Option<u32> {
        let table = self.table(key.table())?;
        let definitions = &self.tables[table as usize];
        let mut encoded = Vec::new();
        for (name, value) in key.tags() {
            series::put_tag(&mut encoded, definitions.tag(name)?, value);
        }
        self.series.read().find(table, &encoded)
    }

    /// Defines the series of a key that [`find_series`](Self::find_series) did not find, and its missing table and tags.
    /// Calls `log` with each new definition.
    pub(crate) fn create_series(
        &mut self,
        key: &SeriesKey,
        tables_max: usize,
        columns_max: usize,
        log: &mut dyn FnMut(Entry<'_>),
    ) -> Result<u32, StoreError> {
        let id = self.series.read().len();
        check("series", id, limits::SERIES_MAX)?;
        let id = id as u32;
        let known = self.table(key.table());
        let new_tags = key
            .tags()
            .iter()
            .filter(|(name, _)| known.is_none_or(|table| self.tables[table as usize].tag(name).is_none()));
        let new_tags = new_tags.count();
        let columns = known.map_or(0, |table| self.tables[table as usize].columns()) + new_tags;
        check("columns of a table", columns.saturating_sub(1), columns_max)?;
        if known.is_none() {
            check("tables", self.live_tables(), tables_max)?;
        }
        let tables = u64::from(known.is_none());
        self.check_new(key.table(), Definitions { tables, series: 1, columns: new_tags as u64 })?;
        let table = match known {
            Some(table) => table,
            None => self.define_table(key.table(), log),
        };
        let mut encoded = Vec::new();
        for (name, value) in key.tags() {
            let tag = self.tag(table, name, log);
            series::put_tag(&mut encoded, tag, value);
        }
        self.define(Entry::Series { id, table, tags: &encoded }, log)
            .expect("BUG: the next series number is free");
        Ok(id)
    }

    /// Drops a key; `false` if the table has no such key. Calls `log` with the new definition.
    pub(crate) fn drop_key(
        &mut self,
        table: u32,
        name: &str,
        log: &mut dyn FnMut(Entry<'_>),
    ) -> Result<bool, StoreError> {
        let definitions = &self.tables[table as usize];
        let Some(key) = definitions.key(name) else { return Ok(false) };
        check("dropped keys of a table", definitions.dropped_keys, limits::DROPPED_KEYS_PER_TABLE_MAX)?;
        self.define(Entry::DroppedKey { table, key }, log).expect("BUG: the key is known");
        Ok(true)
    }

    /// Drops a table and returns its number; `None` if no table has the name. Calls `log` with the new definition.
    pub(crate) fn drop_table(
        &mut self,
        name: &TableName,
        log: &mut dyn FnMut(Entry<'_>),
    ) -> Result<Option<u32>, StoreError> {
        let Some(table) = self.table(name) else { return Ok(None) };
        check("dropped tables", self.dropped_tables, limits::DROPPED_TABLES_MAX)?;
        self.define(Entry::DroppedTable { table }, log).expect("BUG: the table is known");
        Ok(Some(table))
    }

    /// The number of tables that are not dropped.
    pub(crate) fn live_tables(&self) -> usize {
        self.tables.len() - self.dropped_tables
    }

    /// Whether a table was dropped.
    pub(crate) fn is_dropped(&self, table: u32) -> bool {
        self.tables[table as usize].dropped
    }

    /// Defines a table that [`table`](Self::table) did not find.
    pub(crate) fn create_table(
        &mut self,
        name: &TableName,
        tables_max: usize,
        log: &mut dyn FnMut(Entry<'_>),
    ) -> Result<u32, StoreError> {
        check("tables", self.live_tables(), tables_max)?;
        self.check_new(name, Definitions { tables: 1, ..Definitions::default() })?;
        Ok(self.define_table(name, log))
    }

    fn define_table(&mut self, name: &TableName, log: &mut dyn FnMut(Entry<'_>)) -> u32 {
        let id = self.tables.len() as u32;
        self.define(Entry::Table { id, name: name.canonical() }, log)
            .expect("BUG: the next table number is free");
        id
    }

    /// Asks who limits definitions about new ones for a table.
    pub(crate) fn check_new(&self, table: &TableName, new: Definitions) -> Result<(), StoreError> {
        self.limits.as_ref().map_or(Ok(()), |limits| limits.check(table, new, &self.counts))
    }

    /// What is defined for each namespace, without what was dropped.
    pub(crate) fn definitions(&self) -> &DefinitionCounts {
        &self.counts
    }

    /// What is defined for a table.
    fn definitions_of(&self, table: u32) -> Definitions {
        match self.tables.get(table as usize) {
            Some(known) if !known.dropped => Definitions {
                tables: 1,
                series: self.series.read().count(table),
                columns: known.columns() as u64,
            },
            _ => Definitions::default(),
        }
    }

    fn tag(&mut self, table: u32, name: &str, log: &mut dyn FnMut(Entry<'_>)) -> u32 {
        let definitions = &self.tables[table as usize];
        if let Some(tag) = definitions.tag(name) {
            return tag;
        }
        let tag = definitions.tags.len() as u32;
        let physical = definitions.free_name(name, "tag");
        self.define(Entry::Tag { table, tag, name, physical: &physical }, log)
            .expect("BUG: the next tag number is free");
        tag
    }

    /// The key number for values of `field_type`. Defines the column if it is new.
    pub(crate) fn column(
        &mut self,
        table: u32,
        name: &str,
        field_type: FieldType,
        log: &mut dyn FnMut(Entry<'_>),
    ) -> KeyId {
        let definitions = &self.tables[table as usize];
        let key = definitions.key(name).unwrap_or(definitions.keys.len() as u32);
        let known = definitions.keys.get(key as usize);
        if known.is_none_or(|key| key.column(field_type).is_none()) {
            let physical = match known {
                None => definitions.free_name(name, field_type.name()),
                Some(_) => definitions.free_name(&format!("{name}:{field_type}"), field_type.name()),
            };
            self.define(Entry::Column { table, key, field_type, name, physical: &physical }, log)
                .expect("BUG: the next key number is free");
        }
        key
    }

    /// Applies a new definition, or one from a file. A known definition changes nothing. Returns whether it was new.
    pub(crate) fn apply(&mut self, entry: Entry<'_>) -> Result<bool, Malformed> {
        let Some(table) = entry.defined_table() else { return self.apply_uncounted(entry) };
        let before = self.definitions_of(table);
        let applied = self.apply_uncounted(entry);
        let after = self.definitions_of(table);
        if before != after {
            self.counts.change(self.tables[table as usize].namespace, before, after);
        }
        applied
    }

    fn apply_uncounted(&mut self, entry: Entry<'_>) -> Result<bool, Malformed> {
        match entry {
            Entry::Table { id, name } => self.apply_table(id, name),
            Entry::Column { table, key, field_type, name, physical } => {
                let table =
                    self.tables.get_mut(table as usize).ok_or(Malformed("column of an unknown table"))?;
                table.apply_column(key, field_type, name, physical)
            }
            Entry::Tag { table, tag, name, physical } => {
                let table =
                    self.tables.get_mut(table as usize).ok_or(Malformed("tag of an unknown table"))?;
                table.apply_tag(tag, name, physical)
            }
            Entry::Series { id, table, tags } => self.apply_series(id, table, tags),
            Entry::Ttl { table, ttl_us } => {
                let table =
                    self.tables.get_mut(table as usize).ok_or(Malformed("ttl of an unknown table"))?;
                Ok(table.ttl_us.replace(ttl_us) != Some(ttl_us))
            }
            Entry::Retention { ts } => Ok(self.retention.replace(ts) != Some(ts)),
            Entry::DroppedKey { table, key } => {
                let table = self
                    .tables
                    .get_mut(table as usize)
                    .ok_or(Malformed("dropped key of an unknown table"))?;
                table.apply_dropped_key(key)
            }
            Entry::DroppedSeries { table, series } => self.apply_dropped_series(table, series),
            Entry::DroppedTable { table } => self.apply_dropped_table(table),
            Entry::Row { .. } | Entry::Run(_) | Entry::Deletion { .. } => {
                Err(Malformed("row or deletion among definitions"))
            }
        }
    }

    /// Like [`apply`](Self::apply), and remembers a new definition for the next manifest edit.
    pub(crate) fn apply_unsaved(&mut self, entry: Entry<'_>) -> Result<bool, Malformed> {
        let new = self.apply(entry)?;
        if new && !matches!(entry, Entry::Series { .. }) {
            entry.put(&mut self.unsaved);
        }
        Ok(new)
    }

    /// Applies the encoded definitions of the file `path`.
    pub(crate) fn apply_all(&mut self, path: &Path, definitions: &[u8]) -> Result<(), StoreError> {
        let mut reader = Reader::new(definitions);
        while !reader.is_empty() {
            let applied = Entry::read(&mut reader).and_then(|entry| self.apply(entry));
            applied.map_err(|malformed| StoreError::Corrupt {
                path: path.to_owned(),
                offset: 0,
                reason: malformed.0.to_owned(),
            })?;
        }
        Ok(())
    }

    fn define(&mut self, entry: Entry<'_>, log: &mut dyn FnMut(Entry<'_>)) -> Result<(), Malformed> {
        self.apply_unsaved(entry)?;
        log(entry);
        Ok(())
    }

    /// The encoded definitions that the manifest does not have yet.
    pub(crate) fn unsaved(&self) -> &[u8] {
        &self.unsaved
    }

    /// Notes that the manifest has the first `bytes` of [`unsaved`](Self::unsaved).
    pub(crate) fn saved(&mut self, bytes: usize) {
        self.unsaved.drain(..bytes);
    }

    fn apply_table(&mut self, id: u32, name: &str) -> Result<bool, Malformed> {
        match self.tables.get(id as usize) {
            Some(known) if **known.name.canonical() == *name => return Ok(false),
            Some(_) => return Err(Malformed("table number defined twice")),
            None if id as usize != self.tables.len() => return Err(Malformed("table number out of order")),
            None => {}
        }
        let name = TableName::from_canonical(name);
        let namespace = self.counts.number(name.namespace());
        let table = Table::new(name, namespace);
        if self.table_numbers.insert(table.name.clone(), id).is_some() {
            return Err(Malformed("table name defined twice"));
        }
        self.tables.push(table);
        Ok(true)
    }

    /// Series that the file of series is about to define may be among them.
    fn apply_dropped_series(&mut self, table: u32, series: &[u8]) -> Result<bool, Malformed> {
        if table as usize >= self.tables.len() {
            return Err(Malformed("dropped series of an unknown table"));
        }
        Ok(self.series.write().drop_series(table, &series_set::decode(series)?))
    }

    fn apply_dropped_table(&mut self, table: u32) -> Result<bool, Malformed> {
        let known =
            self.tables.get_mut(table as usize).ok_or(Malformed("dropped table that is not known"))?;
        if std::mem::replace(&mut known.dropped, true) {
            return Ok(false);
        }
        self.dropped_tables += 1;
        let name = known.name.clone();
        self.table_numbers.remove(&name);
        self.series.write().drop_table(table);
        Ok(true)
    }

    fn apply_series(&mut self, id: u32, table: u32, tags: &[u8]) -> Result<bool, Malformed> {
        let definitions = self.tables.get(table as usize).ok_or(TABLE_OF_SERIES_MISSING)?;
        let mut seen = [0; limits::TAGS_PER_SERIES_MAX];
        for (count, tag) in series::tags(tags).enumerate() {
            let (tag, _) = tag?;
            if tag as usize >= definitions.tags.len() {
                return Err(TAG_OF_SERIES_MISSING);
            }
            if seen[..count].contains(&tag) {
                return Err(Malformed("series with a tag twice"));
            }
            *seen.get_mut(count).ok_or(Malformed("series with too many tags"))? = tag;
        }
        let dropped = definitions.dropped;
        self.series.write().insert(id, table, tags, dropped)
    }
}

#[cfg(test)]
mod tests;
