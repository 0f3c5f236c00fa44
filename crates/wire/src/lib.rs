//! Sans-I/O codecs: bytes to packets and back.

#![warn(missing_docs)]

pub mod http1;
pub mod http2;
pub mod line;
pub mod mqtt;
pub mod multipart;
pub mod opentsdb;
pub mod postgres;
pub mod prometheus;
pub mod proxy;
pub mod resp;
pub mod telemetry;
pub mod thingsboard;
pub mod websocket;
