//! HBase: the workloads of its PerformanceEvaluation, over HBase's own RPC.
//!
//! `driver.rs` runs the scenarios, `action.rs` has the keys of their phases. `blocking.rs` is the client of the load:
//! `session.rs` is one connection number, `write.rs` and `read.rs` carry out its calls, `operation.rs` has the tests of
//! PerformanceEvaluation, `rows.rs` its rows and values, `java_random.rs` its random numbers and `pe.rs` its formula.
//!
//! `messages.rs`, `frame.rs`, `cell.rs`, `exception.rs` and `scanner.rs` are the protocol; `connection.rs` is a socket.
//! `cluster.rs` finds servers and regions, through `registry.rs`, `zookeeper.rs` and `regions.rs`. `table.rs` makes and
//! drops the table. `tally.rs` counts; `counters.rs` compares that with the servers' counters, and `contents.rs` with the
//! table.

mod action;
mod blocking;
mod cell;
mod cluster;
mod connection;
mod contents;
mod counters;
mod driver;
mod exception;
mod frame;
mod java_random;
mod messages;
mod operation;
mod pe;
mod read;
mod regions;
mod registry;
mod rows;
mod scanner;
mod session;
mod table;
mod tally;
mod write;
mod zookeeper;

pub(crate) use driver::KIND;

#[cfg(test)]
mod tests;
