//! The options of the engine.

/// The options of the engine. [`within`](Self::within) makes them from one bound of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Bytes of the cache of blocks.
    pub cache_bytes: u64,
    /// Bytes of a space in memory before the engine writes them to a file. There can be twice as many more until the file is written.
    pub memtable_bytes: u64,
    /// Bytes of all spaces in memory, also of those that a thread writes to files at the moment. At half of it the engine writes the
    /// largest spaces to files; from it on batches wait.
    pub memtables_bytes_max: u64,
}

/// The bound of memory without another one.
const ENGINE_MEMORY_BYTES_MAX: u64 = 128 << 20;

/// The parts of the memory: the cache has a quarter, all spaces have the rest, and one space is written at a sixteenth.
const CACHE_DIVISOR: u64 = 4;
const MEMTABLE_DIVISOR: u64 = 16;

impl EngineOptions {
    /// The options of an engine that has at most this number of bytes in its cache and in all spaces together, and one batch more
    /// ([`crate::limits::BATCH_BYTES_MAX`]).
    pub fn within(memory_bytes_max: u64) -> Self {
        let cache_bytes = memory_bytes_max / CACHE_DIVISOR;
        Self {
            cache_bytes,
            memtable_bytes: memory_bytes_max / MEMTABLE_DIVISOR,
            memtables_bytes_max: memory_bytes_max - cache_bytes,
        }
    }

    /// The bound of the cache and all spaces together.
    pub fn memory_bytes_max(&self) -> u64 {
        self.cache_bytes + self.memtables_bytes_max
    }
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self::within(ENGINE_MEMORY_BYTES_MAX)
    }
}
