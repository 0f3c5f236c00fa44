//! The writing side of OpenTSDB 2.4 and HiTSDB: data points in JSON (`/api/put`, `/api/mput`) and in lines (`put`).
//!
//! Source of the formats and of the messages: OpenTSDB's documentation of `/api/put` and its classes `PutDataPointRpc`,
//! `IncomingDataPoint`, `Tags` and `TSDB`. HiTSDB's additions follow the vendor's documentation.

pub mod limits;
pub mod put;
pub mod telnet;
