//! Numbers of the fields that sensors read, by which the tap gives their values.

use std::collections::HashMap;
use std::sync::Arc;

use hub::taps::WantedKeys;

use crate::limits::FIELDS_READ_MAX;

/// The numbers of fields. A number never means another field.
#[derive(Debug, Clone)]
pub(super) struct FieldsRead {
    numbers: HashMap<Box<str>, u16>,
    wanted: Arc<WantedKeys>,
}

impl FieldsRead {
    pub(super) fn new() -> Self {
        Self { numbers: HashMap::new(), wanted: Arc::new(WantedKeys::of_elements([], 0)) }
    }

    /// What sensors want of a series.
    pub(super) fn wanted(&self) -> &Arc<WantedKeys> {
        &self.wanted
    }

    /// Gives numbers to fields. Returns whether there are new ones.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn add<'f>(&mut self, fields: impl Iterator<Item = &'f String>) -> Result<bool, String> {
        let before = self.numbers.len();
        for field in fields {
            let number = self.numbers.len();
            if !self.numbers.contains_key(field.as_str()) {
                if number >= FIELDS_READ_MAX {
                    return Err(format!(
                        "all sensors together read more than {FIELDS_READ_MAX} different fields (FIELDS_READ_MAX)"
                    ));
                }
                // The limit fits the number.
                self.numbers.insert(field.as_str().into(), number as u16);
            }
        }
        if self.numbers.len() == before {
            return Ok(false);
        }
        let numbers = self.numbers.iter().map(|(name, number)| (name.clone(), *number));
        self.wanted = Arc::new(WantedKeys::of_elements(numbers, self.wanted.generation() + 1));
        Ok(true)
    }

    /// The number of a field, in lower case.
    pub(super) fn number(&self, field: &str) -> Option<u16> {
        self.numbers.get(field).copied()
    }
}
