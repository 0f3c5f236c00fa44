//! The names of the devices that have the elements from outside.

use sensors::virtual_sensors::plan::{Plan, SourceId};

/// The name of the device whose rows are the elements of a source. No sensor has a name with a slash.
pub(crate) fn input_device(plan: &Plan, id: SourceId) -> String {
    format!("{}/{}/{}", plan.name, plan.streams[id.stream].name, plan.source(id).alias)
}

/// The profile of these devices.
pub(crate) fn input_profile(sensor: &str) -> String {
    format!("{sensor}/inputs")
}
