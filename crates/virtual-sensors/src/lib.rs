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
//!
//! The engine is above the hub: a door or a connector has it beside the hub, and the hub knows only a tap and an observer of series
//! ([`hub::taps`]). It must not know protocols, sockets and connectors: those give it rows and follow its output.
//!
//! Files import only from their own floor and lower ones: `limits`, `files`, `info`, `metrics` and `followers`, `shared`, `host`,
//! `evaluation`, `virtual_sensors`, `operations`.

mod evaluation;
mod files;
mod followers;
mod host;
mod info;
pub mod limits;
mod metrics;
mod operations;
mod shared;
mod virtual_sensors;

pub use files::ContainerInfo;
pub use followers::{Begin, FollowRequest, OutputRow, OutputRows, SensorOutput, SensorOutputs};
pub use info::{
    DataType, ExternalSource, FollowerInfo, FollowerReport, SensorField, SensorInfo, SensorState, SourceInfo,
    SourceState,
};
pub use operations::OutputFollower;
pub use shared::{ExternalSources, PushAnswer, PushReceiver, PushedElement};
pub use virtual_sensors::VirtualSensors;
// Part of [`SensorInfo`].
pub use sensors::virtual_sensors::{Chart, Counters};
// Parts of [`ExternalSource`]: connectors must not use the crate `sensors`.
pub use sensors::virtual_sensors::plan::{
    CsvColumn, CsvFile, CsvFormat, ExternalWrapper, JdbcWrapper, MqttTopic, Relation, Remote,
    RemoteInterface, TimePattern, TimeZone,
};
// Part of [`ExternalSource`] and of [`SensorOutput`].
pub use sensors::virtual_sensors::plan::BrokerTls;
// Part of [`SensorOutput`].
pub use sensors::virtual_sensors::plan::{
    DatabaseAddress, DatabaseExport, DatabaseKind, DatabaseOptions, EmailExport, Encryption, Export, Extent,
    JdbcUrl, Method, MqttExport, Secret, WebhookExport, check_driver, shown_url,
};
