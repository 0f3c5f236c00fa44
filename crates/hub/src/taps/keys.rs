//! The keys that the reader of a tap wants of a series.

use std::collections::HashMap;

/// The keys that are wanted of some series, with their numbers.
#[derive(Debug)]
pub struct WantedKeys {
    numbers: HashMap<Box<str>, u16>,
    of_elements: bool,
    generation: u64,
}

impl WantedKeys {
    /// Keys with their numbers. The reader sees the generation in the rows: numbers of another generation mean other keys.
    pub fn new(keys: impl IntoIterator<Item = (Box<str>, u16)>, generation: u64) -> Self {
        Self { numbers: keys.into_iter().collect(), of_elements: false, generation }
    }

    /// The same for elements of virtual sensors: keys in lower case stand for keys in any case, and a row without a wanted key is an
    /// element too.
    pub fn of_elements(keys: impl IntoIterator<Item = (Box<str>, u16)>, generation: u64) -> Self {
        Self { of_elements: true, ..Self::new(keys, generation) }
    }

    /// The number of a key.
    pub(super) fn number(&self, key: &str) -> Option<u16> {
        match self.numbers.get(key) {
            None if self.of_elements && key.chars().any(char::is_uppercase) => {
                self.numbers.get(&*key.to_lowercase()).copied()
            }
            number => number.copied(),
        }
    }

    /// Whether a row without a wanted key is wanted.
    pub(super) fn wants_all_rows(&self) -> bool {
        self.of_elements
    }

    /// The generation of the numbers.
    pub fn generation(&self) -> u64 {
        self.generation
    }
}
