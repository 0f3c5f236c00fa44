//! What devices ask for.

use crate::registry::PackageKind;

/// The data that a device reads of its package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackageRequest {
    /// The kind of the package.
    pub kind: PackageKind,
    /// Bytes of a chunk; 0 for the whole package.
    pub chunk_bytes: usize,
    /// The number of the chunk, from 0.
    pub chunk: u64,
}
