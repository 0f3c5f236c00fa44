//! Parts: immutable Parquet files of one table, sorted by (series, ts), or of many small ones, sorted by (table, series,
//! ts). docs/format/part.md.
//!
//! Invariants:
//! 1. The store writes a part under a temporary name, syncs it and renames it before a manifest edit names it. A part
//!    without an edit is an orphan; the open removes it.
//! 2. Each (series, ts) appears once in a part. Rows are sorted as the layout says.
//! 3. The store checks every byte of a part against the block checksums in the manifest before it uses the byte.

pub(crate) mod blocks;
pub(crate) mod column;
pub(crate) mod column_stats;
pub(crate) mod columns;
pub(crate) mod context;
mod decode;
mod decompress;
pub(crate) mod encode;
pub(crate) mod group;
mod handle;
mod info;
pub(crate) mod names;
pub(crate) mod narrow;
pub(crate) mod page;
pub(crate) mod read;
mod reader_cache;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod sort;
pub(crate) mod stream;
pub(crate) mod values;
pub(crate) mod write;

#[cfg(test)]
mod tests;

pub(crate) use handle::{NEWEST, Part, Rank};
pub(crate) use info::{PartInfo, PartLayout};
pub(crate) use reader_cache::PartCache;
