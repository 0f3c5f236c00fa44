//! The HiTSDB test: clients write points of many timelines, a fixed number in a request. What the drivers `opentsdb`,
//! `influx` and `prometheus` have in common; each of those writes its protocol. `hitsdb/` runs them.
//!
//! `timelines.rs` computes the data, `written.rs` keeps the outcome of each request, `protocol.rs` is the load,
//! `server.rs` starts and wipes servers, `reader.rs` and the files of products read back, `verify.rs` compares.

pub(crate) mod findings;
pub(crate) mod options;
pub(crate) mod product;
pub(crate) mod protocol;
pub(crate) mod questdb;
pub(crate) mod reader;
pub(crate) mod refusal;
pub(crate) mod request_log;
pub(crate) mod server;
pub(crate) mod timelines;
pub(crate) mod verify;
pub(crate) mod victoria;
