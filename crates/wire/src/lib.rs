//! Sans-I/O codecs: bytes to packets and back.

pub mod mqtt;
pub mod telemetry;
