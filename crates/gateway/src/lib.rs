//! The front doors: one module per protocol, all calling hub only.

pub mod http;
pub mod mqtt;
