//! Encoders of column chunks: they choose encodings by trial, and make pages and the metadata for the footer.
//!
//! The `parquet` crate writes text and bool columns. For numbers, and for columns that are constant within a series, its
//! writer would take more time than the rest of a flush, and it cannot choose widths; see
//! docs/adr/0007-encodings-by-measurement.md. The crate reads all columns, so widely used code reads every byte that these
//! encoders write.

pub(crate) mod decimal;
pub(crate) mod delta;
pub(crate) mod hybrid;
pub(crate) mod numbers;
pub(crate) mod pages;
pub(crate) mod runs;
