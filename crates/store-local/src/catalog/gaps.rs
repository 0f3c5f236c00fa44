//! Stand-ins for definitions that damage to the log has destroyed, so that later definitions keep their numbers.
//!
//! The names of a lost definition are unknown, so the store cannot serve its rows under them. It serves all other rows.

use model::TableName;
use model::limits::LOST_DEFINITIONS_MAX;

use super::{Catalog, series};
use crate::codec::Malformed;
use crate::entry::Entry;

impl Catalog {
    /// Defines stand-ins for the missing definitions before `entry`. Refuses when this makes more stand-ins in all than
    /// damage can explain, because then the number itself is wrong.
    pub(crate) fn fill_gaps(&mut self, entry: Entry<'_>) -> Result<(), Malformed> {
        match entry {
            Entry::Table { id, name } => {
                self.fill_tables(id)?;
                self.drop_earlier_table(id, name)
            }
            Entry::Column { table, key, name, .. } => {
                self.fill_keys(table, key)?;
                self.drop_earlier(table, key, name)
            }
            Entry::Tag { table, tag, .. } => self.fill_tags(table, tag),
            Entry::Series { id, table, tags } => {
                let mut needed = 1;
                for tag in series::tags(tags) {
                    needed = needed.max(tag?.0.saturating_add(1));
                }
                self.fill_tags(table, needed)?;
                self.fill_series(id, table)
            }
            Entry::Ttl { table, .. } => self.fill_tables(table.saturating_add(1)),
            Entry::DroppedKey { table, key } => self.fill_keys(table, key.saturating_add(1)),
            Entry::DroppedTable { table } | Entry::DroppedSeries { table, .. } => {
                self.fill_tables(table.saturating_add(1))
            }
            Entry::Retention { .. } => Ok(()),
            Entry::Row { .. } | Entry::Run(_) | Entry::Deletion { .. } => {
                Err(Malformed("row or deletion among definitions"))
            }
        }
    }

    /// The numbers of the definitions that are missing if there should be `wanted` ones. Counts them as stand-ins.
    fn missing(&mut self, present: usize, wanted: u32) -> Result<std::ops::Range<u32>, Malformed> {
        let missing = (wanted as usize).saturating_sub(present);
        if missing > LOST_DEFINITIONS_MAX - self.stand_ins {
            return Err(Malformed("more definitions are missing before it than can be lost"));
        }
        self.stand_ins += missing;
        Ok(present as u32..wanted)
    }

    fn fill_tables(&mut self, count: u32) -> Result<(), Malformed> {
        if count as usize > model::limits::TABLES_MAX {
            return Err(Malformed("table number over the limit"));
        }
        for id in self.missing(self.tables.len(), count)? {
            self.apply_unsaved(Entry::Table { id, name: &format!("lost table {id}") })?;
        }
        Ok(())
    }

    fn fill_keys(&mut self, table: u32, count: u32) -> Result<(), Malformed> {
        self.fill_tables(table.saturating_add(1))?;
        for key in self.missing(self.tables[table as usize].keys.len(), count)? {
            let name = format!("lost key {key}");
            let field_type = model::FieldType::Json;
            self.apply_unsaved(Entry::Column { table, key, field_type, name: &name, physical: &name })?;
        }
        Ok(())
    }

    /// A new key whose name an earlier one has: that one was dropped, and the definition that said so is lost.
    fn drop_earlier(&mut self, table: u32, key: u32, name: &str) -> Result<(), Malformed> {
        let definitions = &self.tables[table as usize];
        match definitions.key(name) {
            Some(earlier) if key as usize == definitions.keys.len() => {
                self.apply_unsaved(Entry::DroppedKey { table, key: earlier }).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Like [`drop_earlier`](Self::drop_earlier) for a new table.
    fn drop_earlier_table(&mut self, id: u32, name: &str) -> Result<(), Malformed> {
        match self.table(&TableName::from_canonical(name)) {
            Some(table) if id as usize == self.tables.len() => {
                self.apply_unsaved(Entry::DroppedTable { table }).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn fill_tags(&mut self, table: u32, count: u32) -> Result<(), Malformed> {
        self.fill_tables(table.saturating_add(1))?;
        for tag in self.missing(self.tables[table as usize].tags.len(), count)? {
            let name = format!("lost tag {tag}");
            self.apply_unsaved(Entry::Tag { table, tag, name: &name, physical: &name })?;
        }
        Ok(())
    }

    fn fill_series(&mut self, count: u32, table: u32) -> Result<(), Malformed> {
        let present = self.series.read().len();
        for id in self.missing(present, count)? {
            let mut tags = Vec::new();
            series::put_tag(&mut tags, 0, &format!("lost series {id}"));
            self.apply_unsaved(Entry::Series { id, table, tags: &tags })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_gap_keeps_its_number() {
        let mut catalog = Catalog::default();
        let mut tags = Vec::new();
        series::put_tag(&mut tags, 1, "x");
        let entry = Entry::Series { id: 3, table: 1, tags: &tags };
        assert!(catalog.apply(entry).is_err());
        catalog.fill_gaps(entry).unwrap();
        assert_eq!(catalog.apply(entry), Ok(true));
        assert_eq!(
            (catalog.tables.len(), catalog.tables[1].tags.len(), catalog.series.read().len()),
            (2, 2, 4)
        );
    }

    #[test]
    fn a_number_that_no_loss_explains_is_refused_and_costs_nothing() {
        let mut catalog = Catalog::default();
        let tags = &[0, 1, b'x'];
        let field_type = model::FieldType::I64;
        for entry in [
            Entry::Table { id: u32::MAX, name: "t" },
            Entry::Tag { table: u32::MAX, tag: 0, name: "a", physical: "a" },
            Entry::Tag { table: 0, tag: u32::MAX, name: "a", physical: "a" },
            Entry::Column { table: u32::MAX, key: 0, field_type, name: "k", physical: "k" },
            Entry::Column { table: 0, key: u32::MAX, field_type, name: "k", physical: "k" },
            Entry::Series { id: 0, table: u32::MAX, tags },
            Entry::Series { id: u32::MAX, table: 0, tags },
            Entry::Series { id: 0, table: 0, tags: &[255, 255, 255, 255, 15, 1, b'x'] },
        ] {
            assert!(catalog.fill_gaps(entry).is_err(), "{entry:?}");
        }
        assert!(catalog.tables.len() <= 1 && catalog.series.read().len() == 0);
    }

    #[test]
    fn a_key_that_comes_again_drops_the_earlier_one_if_the_drop_is_lost() {
        let mut catalog = Catalog::default();
        catalog.apply(Entry::Table { id: 0, name: "t" }).unwrap();
        let field_type = model::FieldType::I64;
        let column = |key, physical| Entry::Column { table: 0, key, field_type, name: "k", physical };
        catalog.apply(column(0, "k")).unwrap();
        let again = column(1, "k:i64");
        assert!(catalog.apply(again).is_err());
        catalog.fill_gaps(again).unwrap();
        assert_eq!(catalog.apply(again), Ok(true));
        let table = &catalog.tables[0];
        assert_eq!((table.key("k"), table.is_dropped(0)), (Some(1), true));
    }

    #[test]
    fn stand_ins_are_counted_over_all_gaps() {
        let mut catalog = Catalog { stand_ins: LOST_DEFINITIONS_MAX - 3, ..Catalog::default() };
        let tags = &[0, 1, b'x'];
        // A table, a tag and the series 0.
        catalog.fill_gaps(Entry::Series { id: 1, table: 0, tags }).unwrap();
        catalog.apply(Entry::Series { id: 1, table: 0, tags }).unwrap();
        catalog.fill_gaps(Entry::Series { id: 2, table: 0, tags }).unwrap();
        assert!(catalog.fill_gaps(Entry::Series { id: 3, table: 0, tags }).is_err());
    }
}
