//! `tacho table`, `tacho export` and `tacho import --table`: whole tables of a stopped directory or a running server.

mod ahead;
pub(crate) mod export;
pub(crate) mod import;
mod read_csv;
mod read_lines;
pub(crate) mod table;

pub(crate) use read_lines::Precision;
