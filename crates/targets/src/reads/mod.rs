//! Reads over HTTP: the response times of a dashboard's queries.
//!
//! `driver.rs` runs the scenarios and has their keys, `blocking.rs` is the client, `queries.rs` has the queries, and
//! `fill.rs` the data that they read.

mod blocking;
mod driver;
mod fill;
mod queries;

pub(crate) use driver::KIND;
