//! What followers and the engine tell each other.

use std::sync::Arc;

use model::Value;
use sensors::virtual_sensors::plan::{DatabaseOptions, Export, Extent};

use crate::info::SensorField;

/// The list of the outputs of the sensors that run, sorted by name.
pub type SensorOutputs = Arc<[Arc<SensorOutput>]>;

/// The output of a sensor that runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SensorOutput {
    /// The name of the sensor, which is that of the device of the output.
    pub sensor: String,
    /// The fields, in their order.
    pub fields: Vec<SensorField>,
    /// Whether a time in milliseconds has at most one row.
    pub has_unique_timestamps: bool,
    /// How much of it is kept; everything without it.
    pub history: Option<Extent>,
    /// Where the class sends its rows.
    pub export: Option<Export>,
    /// The database that gets its rows.
    pub storage: Option<DatabaseOptions>,
}

impl SensorOutput {
    /// The follower that writes into the database of the storage.
    pub fn storage_follower(&self) -> Option<FollowRequest> {
        let options = self.storage.as_ref()?;
        let target = format!("{}, table {}", options.address, self.sensor);
        Some(self.follower("storage", target, Begin::Oldest))
    }

    /// The follower that sends the rows where the class says.
    pub fn export_follower(&self) -> Option<FollowRequest> {
        let export = self.export.as_ref()?;
        let begin = match export {
            // A table has all that the sensor has; a broker, an address or a reader of mail wants what is new.
            Export::Database(_) => Begin::Oldest,
            Export::Mqtt(_) | Export::Webhook(_) | Export::Email(_) => Begin::Newest,
        };
        Some(self.follower("export", export.target(), begin))
    }

    fn follower(&self, follower: &str, target: String, begin: Begin) -> FollowRequest {
        FollowRequest { sensor: self.sensor.clone(), follower: follower.to_owned(), target, begin }
    }
}

/// The data that a follower follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowRequest {
    /// The name of the sensor.
    pub sensor: String,
    /// The name of the follower, unique for the sensor, such as `storage`.
    pub follower: String,
    /// Where the rows go, in words without secrets. A follower with another target begins again.
    pub target: String,
    /// Where a follower begins that has no cursor.
    pub begin: Begin,
}

/// Where a new follower begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// With the oldest row that the table has.
    Oldest,
    /// After the newest row.
    Newest,
}

/// A row of the output of a sensor.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputRow {
    /// The time in microseconds since 1970. Within a sensor it identifies the row.
    pub us: i64,
    /// The values of the fields, in the order of the output.
    pub values: Vec<Option<Value>>,
}

/// Rows that a follower must deliver, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputRows {
    pub rows: Vec<OutputRow>,
    /// The time from which they were read.
    pub(crate) from_us: i64,
    /// The time up to which they were read, included.
    pub(crate) to_us: i64,
}
