//! The descriptions of sensors, their sources and their followers for callers and connectors.

mod follower;
mod sensor;
mod source;

pub use follower::{FollowerInfo, FollowerReport};
pub use sensor::{DataType, SensorField, SensorInfo, SensorState};
pub use source::{ExternalSource, SourceInfo, SourceState};
