//! The HiTSDB test: clients write points of many timelines, a fixed number in a request. What the drivers `opentsdb`,
//! `influx` and `prometheus` have in common; each of those writes its protocol.
//!
//! `timelines.rs` computes the data, `written.rs` keeps what became of each request, `protocol.rs` is the load,
//! `server.rs` starts and wipes servers, `reader.rs` and the files of products read back, `verify.rs` compares.

mod driver;
mod findings;
pub(crate) mod options;
pub(crate) mod product;
pub(crate) mod protocol;
mod questdb;
pub(crate) mod reader;
pub(crate) mod refusal;
pub(crate) mod server;
pub(crate) mod timelines;
mod verify;
mod victoria;
mod written;

use super::driver::{Driver, TargetKind};
use crate::scenario::Scenario;
use options::Door;

/// The registration of driver `opentsdb`.
pub(crate) const OPENTSDB: TargetKind = TargetKind {
    name: "opentsdb",
    new: |scenario| driver(scenario, Door::OpenTsdb),
    target_keys: true,
    operation_keys: false,
    dataset_keys: true,
};

/// The registration of driver `influx`.
pub(crate) const INFLUX: TargetKind = TargetKind {
    name: "influx",
    new: |scenario| driver(scenario, Door::Influx),
    target_keys: true,
    operation_keys: false,
    dataset_keys: true,
};

/// The registration of driver `prometheus`.
pub(crate) const PROMETHEUS: TargetKind = TargetKind {
    name: "prometheus",
    new: |scenario| driver(scenario, Door::Prometheus),
    target_keys: true,
    operation_keys: false,
    dataset_keys: true,
};

/// The driver of a scenario for a protocol.
fn driver(scenario: &Scenario, door: Door) -> Result<Box<dyn Driver>, String> {
    Ok(Box::new(driver::TimeseriesDriver::new(scenario, door)?))
}
