//! Stand-ins for definitions that damage to the log took away, so that those after them keep their numbers.
//!
//! What a lost definition named is unknown, so its rows cannot be served; the rows of all others can.

use super::{Catalog, series};
use crate::codec::Malformed;
use crate::entry::Entry;

impl Catalog {
    /// Defines stand-ins for everything with a smaller number than `entry` needs.
    pub(crate) fn fill_gaps(&mut self, entry: Entry<'_>) -> Result<(), Malformed> {
        match entry {
            Entry::Table { id, .. } => self.fill_tables(id),
            Entry::Column { table, key, .. } => {
                self.fill_tables(table + 1)?;
                while (self.tables[table as usize].keys.len() as u32) < key {
                    let key = self.tables[table as usize].keys.len() as u32;
                    let name = format!("lost key {key}");
                    let field_type = model::FieldType::Json;
                    self.apply_unsaved(Entry::Column {
                        table,
                        key,
                        field_type,
                        name: &name,
                        physical: &name,
                    })?;
                }
                Ok(())
            }
            Entry::Tag { table, tag, .. } => self.fill_tags(table, tag),
            Entry::Series { id, table, tags } => {
                let mut needed = 1;
                for tag in series::tags(tags) {
                    needed = needed.max(tag?.0.saturating_add(1));
                }
                self.fill_tags(table, needed)?;
                while (self.series.len() as u32) < id {
                    let id = self.series.len() as u32;
                    let mut tags = Vec::new();
                    series::put_tag(&mut tags, 0, &format!("lost series {id}"));
                    self.apply_unsaved(Entry::Series { id, table, tags: &tags })?;
                }
                Ok(())
            }
            Entry::Row { .. } => Err(Malformed("row among definitions")),
        }
    }

    fn fill_tables(&mut self, count: u32) -> Result<(), Malformed> {
        if count as usize > model::limits::TABLES_MAX {
            return Err(Malformed("table number over the limit"));
        }
        while (self.tables.len() as u32) < count {
            let id = self.tables.len() as u32;
            self.apply_unsaved(Entry::Table { id, name: &format!("lost table {id}") })?;
        }
        Ok(())
    }

    fn fill_tags(&mut self, table: u32, count: u32) -> Result<(), Malformed> {
        self.fill_tables(table.saturating_add(1))?;
        while (self.tables[table as usize].tags.len() as u32) < count {
            let tag = self.tables[table as usize].tags.len() as u32;
            let name = format!("lost tag {tag}");
            self.apply_unsaved(Entry::Tag { table, tag, name: &name, physical: &name })?;
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
        assert_eq!((catalog.tables.len(), catalog.tables[1].tags.len(), catalog.series.len()), (2, 2, 4));
    }
}
