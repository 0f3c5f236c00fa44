//! Limits of what a probe reads.

use std::time::Duration;

/// The most keys of a Redis that a sample looks at.
pub(crate) const SAMPLED_KEYS_MAX: usize = 2_000;
/// The longest time for this sample. A key costs two or three short commands.
pub(crate) const SAMPLING_TIME_MAX: Duration = Duration::from_secs(2);
/// The most fields of a hash whose values are read. Larger hashes are counted only.
pub(crate) const SAMPLED_FIELDS_MAX: f64 = 512.0;
/// A key with more elements is big.
pub(crate) const BIG_KEY_ELEMENTS: f64 = 10_000.0;
/// The most tables of a PostgreSQL that are looked at: those with most dead rows.
pub(crate) const TABLES_MAX: usize = 100;
