//! The cost limits of one query.

/// The number of series that a query may read.
pub const SERIES_MAX: usize = 1_000_000;
/// The number of points that a query holds, after downsampling; also the number of points of an answer that fill policies may add.
pub const POINTS_MAX: usize = 10_000_000;
/// The number of values that a query combines: at each time of a group, one value of each of its series.
pub const COMBINED_MAX: u64 = 2_000_000_000;
/// The number of sub queries of a query.
pub const SUB_QUERIES_MAX: usize = 100;
/// The number of filters of a sub query.
pub const FILTERS_MAX: usize = 100;
/// The number of fields of a sub query of HiTSDB.
pub const FIELDS_MAX: usize = 100;
/// The number of tsuids of a sub query.
pub const TSUIDS_MAX: usize = 1_000;
/// The size of a compiled regular expression, in bytes.
pub const REGEXP_BYTES_MAX: usize = 1 << 20;
/// The number of names or series that a list gives.
pub const LISTED_MAX: usize = 100_000;
/// The number of names that a suggestion gives unless the caller asks for more.
pub const SUGGESTED: usize = 25;
