//! The options of the engine.

/// The options of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Bytes of the cache of blocks.
    pub cache_bytes: u64,
    /// Bytes of a space in memory before the engine writes them to a file. There can be twice as many more until the file is written.
    pub memtable_bytes: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { cache_bytes: 32 << 20, memtable_bytes: 8 << 20 }
    }
}
