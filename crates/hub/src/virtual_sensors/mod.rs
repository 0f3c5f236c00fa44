//! Virtual sensors in the server.
//!
//! A thread reads the descriptors of a directory and follows its changes. It takes durable rows of the devices that the sensors read
//! from a tap of its own, evaluates them, and appends the output as rows of a device. So live subscribers, SQL and
//! alarm rules see a sensor as they see a device. A sensor reads the output of another one in the same way.
//!
//! The time of an element is the clock of the sensor: the output is computed from the stored rows alone, and what is computed again
//! after a crash has the same times and replaces itself (`docs/adr/0020-virtual-sensors-in-the-server.md`).
//!
//! `docs/sensors.md` describes the files.

mod candidate;
mod checkpoint;
mod connectors;
mod container;
mod cursor;
mod destination;
mod directory;
mod durable;
mod engine;
mod engine_files;
mod evaluate;
mod external;
mod fields_read;
mod follower_info;
mod followers;
mod graph;
mod history_rows;
mod info;
mod input_names;
pub mod limits;
mod metrics;
mod operations;
mod output;
mod pushes;
mod pushing;
mod readers;
mod record;
mod reread;
mod running;
mod sensor_output;
mod shared;
mod source_operations;
mod start;
mod wishes;

pub use connectors::ExternalSources;
pub use container::ContainerInfo;
pub use external::{ExternalSource, SourceInfo, SourceState};
pub use follower_info::{FollowerInfo, FollowerReport};
pub use followers::{
    Begin, FollowRequest, OutputFollower, OutputRow, OutputRows, SensorOutput, SensorOutputs,
};
pub use info::{DataType, SensorField, SensorInfo, SensorState};
pub use pushes::{PushAnswer, PushReceiver, PushedElement};
pub(crate) use shared::Sensors;
// Part of [`SensorInfo`].
pub use sensors::virtual_sensors::{Chart, Counters};
// Parts of [`ExternalSource`]: connectors must not use the crate `sensors`.
pub use sensors::virtual_sensors::plan::{
    CsvColumn, CsvFile, CsvFormat, External, JdbcSource, MqttTopic, Relation, Remote, RemoteInterface,
    TimePattern, TimeZone,
};
// Part of [`ExternalSource`] and of [`SensorOutput`].
pub use sensors::virtual_sensors::plan::BrokerTls;
// Part of [`SensorOutput`].
pub use sensors::virtual_sensors::plan::{
    DatabaseAddress, DatabaseExport, DatabaseKind, DatabaseOptions, EmailExport, Encryption, Export, Extent,
    JdbcUrl, Method, MqttExport, Secret, WebhookExport, check_driver, shown_url,
};
