//! Applies definitions to a table: columns, dropped keys and tags.

use std::sync::{Arc, OnceLock};

use model::FieldType;
use store::TableColumns;

use super::{Key, Table, Tag, type_bit};
use crate::codec::Malformed;
use crate::row::KeyId;

impl Table {
    pub(super) fn apply_column(
        &mut self,
        key: KeyId,
        field_type: FieldType,
        name: &str,
        physical: &str,
    ) -> Result<bool, Malformed> {
        let index = field_type.code() as usize - 1;
        if let Some(known) = self.keys.get(key as usize) {
            match &known.columns[index] {
                Some(column) if **column == *physical && *known.name == *name => return Ok(false),
                Some(_) => return Err(Malformed("column defined twice")),
                None if *known.name != *name => return Err(Malformed("key number with two names")),
                None => {}
            }
        } else if key as usize != self.keys.len() || self.key_numbers.contains_key(name) {
            return Err(Malformed("key number out of order"));
        }
        let physical: Arc<str> = physical.into();
        if !self.taken.insert(physical.clone()) {
            return Err(Malformed("column name defined twice"));
        }
        if key as usize == self.keys.len() {
            let name: Arc<str> = name.into();
            self.key_numbers.insert(name.clone(), (key, 0));
            self.keys.push(Key { name, columns: Default::default(), dropped: false });
        }
        if self.is_dropped(key) {
            // Only after damage: the log lost the definition of the column before that of the drop.
            self.dropped_columns += 1;
        } else {
            self.show(key, field_type, name, &physical);
            if let Some((_, types)) = self.key_numbers.get_mut(name) {
                *types |= type_bit(field_type);
            }
        }
        self.keys[key as usize].columns[index] = Some(physical);
        self.view = OnceLock::new();
        Ok(true)
    }

    /// Gives a new column the name under which readers see it. That is the physical name unless a dropped column has left
    /// a plainer one free.
    fn show(&mut self, key: KeyId, field_type: FieldType, name: &str, physical: &Arc<str>) {
        if self.dropped_keys == 0 {
            return;
        }
        let is_first = self.keys[key as usize].columns.iter().all(Option::is_none);
        let wanted = if is_first { name.to_owned() } else { format!("{name}:{field_type}") };
        let shown = TableColumns::free_name(&wanted, field_type.name(), |name| {
            self.view().columns().has_column(name)
        });
        if shown != *physical {
            self.shown.insert(physical.clone(), shown);
        }
    }

    pub(super) fn apply_dropped_key(&mut self, key: KeyId) -> Result<bool, Malformed> {
        let known = self.keys.get_mut(key as usize).ok_or(Malformed("dropped key that is not known"))?;
        if std::mem::replace(&mut known.dropped, true) {
            return Ok(false);
        }
        self.dropped_keys += 1;
        for physical in known.columns.iter().flatten() {
            self.shown.remove(physical);
            self.dropped_columns += 1;
        }
        let name = known.name.clone();
        self.key_numbers.remove(&name);
        self.view = OnceLock::new();
        Ok(true)
    }

    pub(super) fn apply_tag(&mut self, tag: u32, name: &str, physical: &str) -> Result<bool, Malformed> {
        match self.tags.get(tag as usize) {
            Some(known) if *known.name == *name && *known.physical == *physical => return Ok(false),
            Some(_) => return Err(Malformed("tag number defined twice")),
            None if tag as usize != self.tags.len() => return Err(Malformed("tag number out of order")),
            None => {}
        }
        let physical: Arc<str> = physical.into();
        if !self.taken.insert(physical.clone()) {
            return Err(Malformed("column name defined twice"));
        }
        self.tags.push(Tag { name: name.into(), physical });
        self.view = OnceLock::new();
        Ok(true)
    }
}
