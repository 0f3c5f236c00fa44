//! Every limit of comparisons and searches, with the reason for its value.

/// The length of a slice of a comparison. In a shorter one, start and end dominate; during a longer one, the
/// disturbances of a machine differ between the sides.
pub(crate) const SLICE_MS: std::ops::RangeInclusive<u32> = 5..=10_000;
/// The longest `capacity.json` that is read. A step takes 300 bytes.
pub(crate) const CAPACITY_FILE_BYTES_MAX: u64 = 1024 * 1024;
