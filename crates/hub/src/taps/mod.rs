//! A tap: a lossless, bounded subscription to the rows of some series, after they are durable.
//!
//! Ingest queues the values that the reader of the tap wants, with the sequence that makes them durable. The reader takes what is
//! durable, in the order in which it was appended. The queue is bounded in bytes. A series whose rows found no room is marked, and the
//! reader gets the mark in place of the rows: it reads the series again from the store ([`TakenRows::lost`]). While nobody wants a
//! series, ingest pays one load of an atomic number.
//!
//! The hub has a list of taps, and a list of observers that learn which series doors look up. It does not know what the readers do.
//!
//! Rows of imports do not pass: they are history.

mod append_list;
mod keys;
pub mod limits;
mod listeners;
mod pending;
mod rows;
mod tap;

pub use keys::WantedKeys;
pub(crate) use listeners::Listeners;
pub use listeners::{FoundSeries, SeriesObserver};
pub use pending::TakenRows;
pub use rows::TapRow;
pub use tap::{Tap, Wanted};
