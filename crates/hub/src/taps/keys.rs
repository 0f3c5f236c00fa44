//! The keys that the reader of a tap wants of a series.

use std::collections::HashMap;

/// The keys that are wanted of some series, with their numbers.
#[derive(Debug)]
pub(crate) struct WantedKeys {
    numbers: HashMap<Box<str>, u8>,
    generation: u64,
}

impl WantedKeys {
    /// Keys with their numbers. The reader sees the generation in the rows: numbers of another generation mean other keys.
    pub(crate) fn new(keys: impl IntoIterator<Item = (Box<str>, u8)>, generation: u64) -> Self {
        Self { numbers: keys.into_iter().collect(), generation }
    }

    /// The number of a key.
    pub(super) fn number(&self, key: &str) -> Option<u8> {
        self.numbers.get(key).copied()
    }

    /// The generation of the numbers.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }
}
