//! TSBS's use case `iot`: trucks write readings and diagnostics, and thirteen queries ask for fleets, over InfluxDB's interface.
//!
//! `trucks.rs` computes what trucks report, `faults.rs` loses and delays some of it, `lines.rs` makes the requests and counts what
//! must be stored. `queries.rs` has the queries, `client.rs` is the load, `driver.rs` runs the scenario and compares.

mod client;
mod driver;
mod faults;
mod lines;
mod options;
mod queries;
mod trucks;

pub(crate) use driver::KIND;
