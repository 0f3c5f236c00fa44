//! The bounds of every key-value store.

/// Longest key. The engine stores key lengths in 16 bits.
pub const KEY_BYTES_MAX: usize = 65_535;

/// Longest value.
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// Largest batch: keys, values and a fixed charge for each operation ([`OPERATION_BYTES`]).
pub const BATCH_BYTES_MAX: usize = 32 << 20;

/// The charge for an operation besides its key and value: what the engine keeps in memory for it.
pub const OPERATION_BYTES: usize = 64;

/// Most keys that the deletions of ranges in one batch may delete. A caller with more deletes them in several batches.
pub const RANGE_KEYS_MAX: usize = 100_000;

/// Most bytes of batches that are not durable yet. Beyond it a store is busy.
pub const UNDURABLE_BYTES_MAX: usize = 64 << 20;

/// Longest name of a space.
pub const SPACE_NAME_BYTES_MAX: usize = 32;

/// Most spaces.
pub const SPACES_MAX: usize = 64;
