//! What the store has defined, and the limits of it.

use model::{Batch, FieldType, TableName};

use super::State;
use crate::{DefinitionCounts, Definitions, RefusedRow, RefusedRows, StoreError};

impl State {
    /// Asks who limits definitions about a new series or a new table.
    pub(super) fn check_new(&self, table: &TableName, tags: &[&str], series: u64) -> Result<(), StoreError> {
        let Some(limits) = &self.limits else { return Ok(()) };
        let known = self.tables.get(table);
        let new_tags = tags
            .iter()
            .filter(|tag| known.is_none_or(|known| known.tags.iter().all(|one| *one.tag != ***tag)));
        let (tables, columns) = (u64::from(known.is_none()), new_tags.count() as u64);
        limits.check(table, Definitions { tables, series, columns }, &self.definitions())
    }

    /// Asks who limits definitions about the new columns of a batch, and names the rows and fields that get none.
    pub(super) fn check_new_columns(&self, batch: &Batch) -> Result<(), StoreError> {
        let Some(limits) = &self.limits else { return Ok(()) };
        let present = self.definitions();
        let mut added: Vec<(TableName, &str, FieldType)> = Vec::new();
        let mut refused = Vec::new();
        for (number, row) in batch.rows().enumerate() {
            let (mut fields, mut reason) = (Vec::new(), None);
            let columns = &self.tables[&self.table_of[row.series().0 as usize]];
            for (field_number, field) in row.fields().enumerate() {
                let new = (columns.table.clone(), field.key, field.value.field_type());
                if columns.has_field(new.1, new.2) || added.contains(&new) {
                    continue;
                }
                let of_namespace =
                    |one: &&(TableName, &str, FieldType)| one.0.namespace() == new.0.namespace();
                let count = added.iter().filter(of_namespace).count() as u64 + 1;
                match limits.check(&new.0, Definitions { columns: count, ..Definitions::default() }, &present)
                {
                    Ok(()) => added.push(new),
                    Err(error) => {
                        fields.push(field_number);
                        reason.get_or_insert(error);
                    }
                }
            }
            refused.extend(reason.map(|reason| RefusedRow { row: number, fields, reason }));
        }
        RefusedRows::check(refused)
    }

    /// What is defined for each namespace.
    pub(super) fn definitions(&self) -> DefinitionCounts {
        let mut counts = DefinitionCounts::default();
        for (table, columns) in &self.tables {
            let series = self.keys.keys().filter(|key| key.table() == table).count() as u64;
            let columns = (columns.tags.len() + columns.fields.len()) as u64;
            let number = counts.number(table.namespace());
            counts.change(number, Definitions::default(), Definitions { tables: 1, series, columns });
        }
        counts
    }
}
