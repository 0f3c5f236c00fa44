//! GSN over HTTP: the questions of its tool `eval-queries`, and uploads of rows to many sensors.
//!
//! `driver.rs` runs the scenarios, `options.rs` has their keys. `sensors.rs` reads the list of sensors, `answer.rs` checks an answer, `reads.rs` is the client
//! of the questions, `tally.rs` counts what it gets, and `block.rs` prints it as the tool does. `uploads.rs` is the client that writes, `streams.rs` has its
//! rows, and `server.rs` the server that a run of uploads starts. `verify.rs` compares with what the server has afterwards.

mod answer;
mod block;
mod driver;
mod options;
mod reads;
mod sensors;
mod server;
mod streams;
mod tally;
mod uploads;
mod verify;

pub(crate) use driver::KIND;
