//! Query languages for time series: their grammars and what they compute.
//!
//! A query reads tables through [`Source`], series by series, and returns its answer as values. This crate does no I/O of its own and
//! knows no socket, no protocol and no thread. The caller decides on which thread a query runs, for how long, and with how much
//! memory: a visitor that returns `Break`, or a source that returns an error, ends the query.

mod deviation;
mod error;
pub mod influxql;
pub mod opentsdb;
mod runs;
mod source;
mod store_source;

pub use error::SourceError;
pub use runs::each_series;
pub use source::{SeriesRead, Source, Table, TagPairs};
pub use store_source::{Access, AccessRule, StoreSource, Supervisor};
