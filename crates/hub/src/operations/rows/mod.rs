//! Rows: the one way in, latest values, history and annotations.

mod annotations;
mod ingest;
pub mod message;
mod points;
mod reads;
mod series_owner;
mod shown_series;

pub use shown_series::ShownSeries;
