//! The description of a virtual sensor for callers.

use std::sync::Arc;

pub use sensors::virtual_sensors::descriptor::DataType;
use sensors::virtual_sensors::{Chart, Counters};

use super::follower::FollowerInfo;
use super::source::SourceInfo;

/// A virtual sensor of the server's directory.
#[derive(Debug, Clone, PartialEq)]
pub struct SensorInfo {
    /// The name in the file; unique in the tenant without regard to case. That of the file if the file has none.
    pub name: String,
    /// The text for people.
    pub description: String,
    /// Where the sensor is, and other properties, such as `("latitude", "46.5")`. Keys are in lower case.
    pub addressing: Vec<(String, String)>,
    /// The fields of the output, in their order.
    pub fields: Vec<SensorField>,
    /// The table of the output, an ordinary table of the default tenant; empty if the sensor has never run.
    pub table: String,
    /// The device that the output belongs to: the tag `device` of its series. Empty if the sensor has never run.
    pub device: String,
    /// Whether it runs.
    pub state: SensorState,
    /// Why the file, as it is now, is not used, although the sensor runs as the file was before.
    pub problem: Option<String>,
    /// The name of the file in the directory.
    pub file: String,
    /// The parts of the file without effect, with places.
    pub notes: Vec<String>,
    /// Sources that no device feeds yet.
    pub waits_for: Vec<String>,
    /// Sources whose elements come from outside.
    pub sources: Vec<SourceInfo>,
    /// How the sensor is computed, in lines for people.
    pub explanation: String,
    /// Its work since it was loaded.
    pub counters: Counters,
    /// Rows of devices that were left out because they were not newer than the newest one of their device.
    pub rows_out_of_order: u64,
    /// Rows of the output that were not stored: without any value, or with a time or a text that the server refuses.
    pub rows_refused: u64,
    /// Devices that it does not read, because it reads too many.
    pub devices_left_out: u64,
    /// Turns that took more than twice their time, because one evaluation took longer than that.
    pub turns_over_budget: u64,
    /// Elements that it holds.
    pub elements_held: usize,
    /// Bytes that it holds for them.
    pub bytes_held: usize,
    /// The chart of its newest rows, of a sensor of the class Chart that runs.
    pub chart: Option<Arc<Chart>>,
    /// What copies its output elsewhere.
    pub followers: Vec<FollowerInfo>,
}

/// A field of the output of a sensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SensorField {
    /// The name, in lower case.
    pub name: String,
    pub data_type: DataType,
    /// The unit; empty if there is none.
    pub unit: String,
    /// The text for people.
    pub description: String,
}

/// Whether a sensor runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SensorState {
    /// It evaluates what comes.
    Running,
    /// It does not run.
    Failed {
        /// The file, the place and what is expected there.
        reason: String,
    },
}

impl SensorState {
    /// The state in one word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Failed { .. } => "failed",
        }
    }
}
