//! `tacho table`, `tacho export` and `tacho import --table`: whole tables of a stopped directory or a running server.

mod ahead;
mod columns;
mod confirm;
mod drop_column;
pub(crate) mod export;
pub(crate) mod import;
mod outcome;
mod read_csv;
mod read_lines;
mod read_parquet;
mod repeated;
mod sink;
pub(crate) mod table;

pub(crate) use outcome::{Care, FileOutcome, hint, totals};
pub(crate) use read_csv::CsvCounts;
pub(crate) use read_lines::{Precision, TableRows};
pub(crate) use repeated::Repeated;
pub(crate) use sink::{IntoServer, Sink};
