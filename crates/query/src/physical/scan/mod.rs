//! The operator that reads a table, and how it reads.
//!
//! [`ScanSpec`] is the part of a query that a table answers. [`StoreScan`] is DataFusion's operator over it. Its partitions share the readers of one
//! execution ([`shared_readers`]). An operator that may block takes rows from [`PartitionRows`]; DataFusion takes them from a stream
//! ([`row_stream`]), for which [`jobs`] read ahead.

mod fingerprint;
mod jobs;
mod partition_rows;
mod row_estimate;
mod row_stream;
mod shared_readers;
mod slices;
mod spec;
mod store_scan;
mod top_k_filter;

pub(super) use fingerprint::ScanFingerprint;
pub(super) use jobs::Jobs;
pub(super) use partition_rows::PartitionRows;
pub(super) use shared_readers::ReadMode;
pub(crate) use spec::ScanSpec;
pub(crate) use store_scan::StoreScan;
