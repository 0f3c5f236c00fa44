//! Column chunks as bytes: encodings chosen by trying them out, pages, and what the footer says about them.
//!
//! The `parquet` crate writes text and bool columns. For numbers and for columns that are constant within a series its
//! writer costs more than the rest of a flush, and it cannot choose widths; see docs/adr/0007-encodings-by-measurement.md.
//! Reading is the crate's, so that every byte written here is read by code that others use too.

pub(crate) mod decimal;
pub(crate) mod delta;
pub(crate) mod hybrid;
pub(crate) mod numbers;
pub(crate) mod pages;
pub(crate) mod runs;
