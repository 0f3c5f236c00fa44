//! Clients of files, devices and services for virtual sensors: wrappers that read, and exporters that write.
//!
//! A wrapper never gives elements to a sensor. It appends them as rows of a device of the source, through the same way in as devices, and
//! the sensor reads this device (`docs/adr/0021-connectors.md`). What writes follows the durable output of a sensor.

mod addresses;
mod backoff;
mod broker;
mod databases;
mod exporter;
mod exporters;
pub mod limits;
mod start;
mod tasks;
mod time;
mod tls;
mod wrappers;

pub use start::Connectors;
