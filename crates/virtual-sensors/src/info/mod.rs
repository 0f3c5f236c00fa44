//! What callers and connectors see of sensors, their sources and their followers.

mod follower;
mod sensor;
mod source;

pub use follower::{FollowerInfo, FollowerReport};
pub use sensor::{DataType, SensorField, SensorInfo, SensorState};
pub use source::{ExternalSource, SourceInfo, SourceState};
