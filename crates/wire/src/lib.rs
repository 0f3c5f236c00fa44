//! Sans-I/O codecs: bytes to packets and back.

pub mod telemetry;
