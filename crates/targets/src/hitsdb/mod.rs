//! The drivers of the HiTSDB test: `opentsdb`, `influx` and `prometheus`. `timeseries/` has what they share, and each of their
//! folders a protocol.

mod driver;

use load::scenario::Scenario;

use crate::driver::{Driver, TargetKind};
use crate::timeseries::options::Door;

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
