//! A tap: a lossless, bounded subscription to the rows of some series, after they are durable.
//!
//! Ingest queues the values that the reader of the tap wants, with the sequence that makes them durable. The reader takes what is
//! durable, in the order in which it was appended. The queue is bounded in bytes. A series whose rows found no room is marked, and the
//! reader gets the mark in place of the rows: it reads the series again from the store ([`Taken::lost`]). While nobody wants a
//! series, ingest pays one load of an atomic number.
//!
//! Rows of imports do not pass: they are history.

mod keys;
pub(crate) mod limits;
mod pending;
mod rows;
mod tap;

pub(crate) use keys::WantedKeys;
pub(crate) use pending::Taken;
pub(crate) use rows::TapRow;
pub(crate) use tap::Tap;
